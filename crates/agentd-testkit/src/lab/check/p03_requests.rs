//! P3: every model request was accepted by the strict server; none repeats a finished step; requests
//! are prefix-stable. Each is on record before it is sent, and contains what the journal contains.

use super::evidence::ModelRequest;
use super::requests::{self, Matched};
use super::story::{Request, Story};
use super::{Case, Found, outer, words};
use serde_json::Value;

const P: &str = "P3";

pub fn check(case: &Case<'_>, found: &mut Found) {
    for request in &case.evidence.model {
        if !request.accepted || !request.violations.is_empty() {
            let why: Vec<String> = request.violations.iter().map(Value::to_string).collect();
            let what = format!(
                "the model refused request {}: {}",
                request.n,
                why.join("; ")
            );
            match &request.agent {
                Some(agent) => found.add(P, case.evidence.id(agent), what, &[]),
                None => found.add_of_run(P, what),
            }
        }
    }
    instructions(case, found);
    for (journal, story) in case.evidence.journals.iter().zip(&case.stories) {
        owners(story, found);
        if journal.damage.is_some() {
            continue;
        }
        let got = requests::of_agent(case.evidence, journal);
        if outer::is_outer(story) {
            outer::requests(P, story, &got, found);
            continue;
        }
        match requests::matched(journal, story, &got) {
            Matched::Not(why) => {
                for (what, at) in why {
                    found.add(P, story.agent, what, &at);
                }
            }
            Matched::All(pairs) => {
                let pairs = pairs.into_iter().map(|at| &story.requests[at]);
                let pairs: Vec<_> = got.into_iter().zip(pairs).collect();
                finished_steps(story, &pairs, found);
                prefixes(story, &pairs, found);
            }
        }
    }
}

/// Every request has the project's instructions in its system prompt, in runs with such a file.
fn instructions(case: &Case<'_>, found: &mut Found) {
    let Some(expected) = case.evidence.run.expects["instructions"].as_str() else {
        return;
    };
    for request in &case.evidence.model {
        if !request.body["system"].to_string().contains(expected) {
            let what = format!("request {} lacks the project's instructions", request.n);
            found.add_of_run(P, what);
        }
    }
}

/// A request belongs to the newest process, and ends once.
fn owners(story: &Story<'_>, found: &mut Found) {
    let mut newest = 0;
    for (seq, incarnation, _) in &story.incarnations {
        if *incarnation <= newest {
            let what = format!("incarnation {incarnation} began after {newest}");
            found.add(P, story.agent, what, &[*seq]);
        }
        newest = *incarnation;
    }
    for request in &story.requests {
        let own = format!("{}.", request.incarnation);
        if !request.id.starts_with(&own) {
            let (id, now) = (&request.id, request.incarnation);
            let what = format!("request {id} was sent while incarnation {now} ran the agent");
            found.add(P, story.agent, what, &[request.sent]);
        }
        if request.ended.len() > 1 {
            let at: Vec<u64> = request.ended.iter().map(|(seq, _)| *seq).collect();
            let what = format!("request {} ended {} times", request.id, at.len());
            found.add(P, story.agent, what, &at);
        }
    }
}

type Pair<'a> = (&'a ModelRequest, &'a Request<'a>);

/// A request whose answer is on record is not sent again.
fn finished_steps(story: &Story<'_>, pairs: &[Pair<'_>], found: &mut Found) {
    for (index, (request, sent)) in pairs.iter().enumerate() {
        let completed = sent
            .ended
            .iter()
            .any(|(_, outcome)| *outcome == "completed");
        if !completed {
            continue;
        }
        for (again, sent_again) in &pairs[index + 1..] {
            let same = sent.conversation == sent_again.conversation
                && sent.purpose == sent_again.purpose
                && messages(request) == messages(again);
            if same {
                let (first, second) = (request.n, again.n);
                let what = format!("request {second} repeats request {first}, which was answered");
                found.add(P, story.agent, what, &[sent.sent, sent_again.sent]);
            }
        }
    }
}

/// A later request begins with the messages of the one before it in the same conversation, unless the window
/// was compacted in between or goes to another provider.
fn prefixes(story: &Story<'_>, pairs: &[Pair<'_>], found: &mut Found) {
    let answers: Vec<_> = pairs
        .iter()
        .filter(|(_, sent)| sent.purpose == "answer")
        .collect();
    for (index, (later, sent_later)) in answers.iter().enumerate() {
        let mut before = answers[..index].iter().rev();
        let before = before.find(|(_, sent)| sent.conversation == sent_later.conversation);
        let Some((earlier, sent)) = before else {
            continue;
        };
        let between = story.events.iter().filter(|event| {
            event.seq > sent.sent
                && event.seq < sent_later.sent
                && event.conversation == sent.conversation
        });
        let mut exceptions =
            between.filter(|event| event.is("compacted") || is_other(story, event));
        if exceptions.next().is_some() {
            continue;
        }
        let (short, long) = (messages(earlier), messages(later));
        if !long.starts_with(&short) {
            let (first, second) = (earlier.n, later.n);
            let what =
                format!("request {second} does not begin with the messages of request {first}");
            found.add(P, story.agent, what, &[sent.sent, sent_later.sent]);
        }
    }
}

/// Whether this context goes to another provider, or in another format, than the previous one.
fn is_other(story: &Story<'_>, event: &super::evidence::Event) -> bool {
    let of = |event: &super::evidence::Event| {
        (
            event.text("provider").to_owned(),
            event.text("wire").to_owned(),
        )
    };
    let mut before = story
        .events
        .iter()
        .rev()
        .filter(|it| it.is("context") && it.seq < event.seq);
    event.is("context") && before.next().is_some_and(|before| of(before) != of(event))
}

/// The messages of a request without the provider's cache markers.
fn messages(request: &ModelRequest) -> Vec<Value> {
    let mut messages = words::messages(&request.body).clone();
    unmark(&mut messages);
    messages.as_array().cloned().unwrap_or_default()
}

fn unmark(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(unmark),
        Value::Object(map) => {
            map.retain(|key, _| key != "cache_control");
            map.values_mut().for_each(unmark);
        }
        _ => {}
    }
}
