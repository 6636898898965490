//! P5: all text that any client received is in the journal, marked incomplete if it was interrupted.

use super::evidence::{Client, try_of};
use super::story::Story;
use super::{Case, Found, words};
use serde_json::Value;
use std::collections::BTreeMap;

const P: &str = "P5";

pub fn check(case: &Case<'_>, found: &mut Found) {
    for story in &case.stories {
        marks(story, found);
    }
    for client in &case.evidence.clients {
        deltas(case, client, found);
        answers(case, client, found);
    }
}

/// A reply is one message; it is `complete` exactly when its request was completed.
fn marks(story: &Story<'_>, found: &mut Found) {
    for request in story
        .requests
        .iter()
        .filter(|request| request.purpose == "answer")
    {
        let messages = story.events.iter().filter(|event| event.is("message"));
        let own = messages.filter(|event| event.request().as_deref() == Some(&request.id));
        let own: Vec<_> = own.collect();
        let at: Vec<u64> = own.iter().map(|event| event.seq).collect();
        if own.len() > 1 {
            let what = format!(
                "the reply to request {} is {} messages",
                request.id,
                own.len()
            );
            found.add(P, story.agent, what, &at);
        }
        let completed = request
            .ended
            .iter()
            .any(|(_, outcome)| *outcome == "completed");
        if completed && own.is_empty() {
            let what = format!(
                "request {} was completed, but its reply is missing",
                request.id
            );
            found.add(P, story.agent, what, &[request.sent]);
        }
        for message in own {
            let is_whole = message.text("status") == "complete";
            if is_whole != completed {
                let status = message.text("status");
                let what = format!("the reply to request {} is marked `{status}`", request.id);
                found.add(P, story.agent, what, &[message.seq]);
            }
        }
    }
}

/// What was streamed to a client is a part of the reply, in its order. A slow client may have missed
/// pieces.
fn deltas(case: &Case<'_>, client: &Client, found: &mut Found) {
    let own = client.head.agent.as_deref();
    let mut pieces: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let mut all = Vec::new();
    for line in &client.saw {
        match line["saw"].as_str().unwrap_or_default() {
            // Earlier pieces may come again.
            "connected" => all.extend(std::mem::take(&mut pieces)),
            "delta" if matches!(line["type"].as_str(), None | Some("text")) => {
                let agent = line["agent"].as_str().or(own).unwrap_or_default();
                let agent = case.evidence.id(agent).to_owned();
                let request = try_of(&line["request"]).unwrap_or_default();
                let text = line["text"].as_str().unwrap_or_default().to_owned();
                pieces.entry((agent, request)).or_default().push(text);
            }
            _ => {}
        }
    }
    all.extend(pieces);
    for ((agent, request), pieces) in all {
        let Some(story) = case.story(&agent) else {
            continue;
        };
        let (kept, at) = kept(story, &request);
        if let Some(missing) = missing(&kept, &pieces) {
            let name = &client.name;
            let what =
                format!("client {name} saw `{missing}` of request {request}, which is nowhere");
            found.add(P, &agent, what, &at);
        }
    }
}

/// All stored text of the reply to a request: the message, or for a summary whichever it became.
fn kept(story: &Story<'_>, request: &str) -> (String, Vec<u64>) {
    let known = story.requests.iter().find(|known| known.id == request);
    let is_summary = known.is_some_and(|known| known.purpose == "compact");
    let mut text = String::new();
    let mut at: Vec<u64> = known.iter().map(|known| known.sent).collect();
    for event in story.events {
        if event.is("message") && event.request().as_deref() == Some(request) {
            text.push_str(&words::texts(&event.body["blocks"]).concat());
            at.push(event.seq);
        }
        if event.is("summary") && is_summary {
            text.push_str(event.text("text"));
        }
    }
    (text, at)
}

fn dense(text: &str) -> String {
    text.split_whitespace().collect()
}

/// The first piece that is not in the text after the previous pieces.
fn missing<'a>(text: &str, pieces: &'a [String]) -> Option<&'a str> {
    let text = dense(text);
    let mut rest = text.as_str();
    for piece in pieces {
        let dense = dense(piece);
        match rest.find(&dense) {
            Some(at) => rest = &rest[at + dense.len()..],
            None => return Some(piece),
        }
    }
    None
}

/// The answer that a command printed is what the turn's messages say.
fn answers(case: &Case<'_>, client: &Client, found: &mut Found) {
    for line in client.saw.iter().filter(|line| line["saw"] == "line") {
        let printed = line["text"].as_str().unwrap_or_default();
        let printed: Value = serde_json::from_str(printed).unwrap_or_default();
        let (turn, text) = (printed["turn"].as_str(), printed["text"].as_str());
        let (Some(turn), Some(text), true) = (turn, text, printed["status"].is_string()) else {
            continue;
        };
        let with_turn = |story: &&Story<'_>| story.turn(turn).is_some();
        let Some(story) = case.stories.iter().find(with_turn) else {
            let what = format!(
                "client {} was told of turn {turn}, which does not exist",
                client.name
            );
            found.add_of_run(P, what);
            continue;
        };
        // The newest reply at the end of the turn may belong to an earlier turn.
        let ended = story
            .turn(turn)
            .and_then(|turn| turn.ended.first().map(|(seq, _)| *seq));
        let messages = story.events.iter().filter(|event| event.is("message"));
        let messages = messages.filter(|event| ended.is_none_or(|ended| event.seq <= ended));
        let kept: Vec<String> = messages
            .map(|event| dense(&words::texts(&event.body["blocks"]).concat()))
            .collect();
        let told = dense(text);
        if !told.is_empty() && !kept.iter().any(|kept| kept.contains(&told)) {
            let what = format!(
                "client {} was answered `{text}`, which is nowhere",
                client.name
            );
            found.add(P, story.agent, what, &[]);
        }
    }
}
