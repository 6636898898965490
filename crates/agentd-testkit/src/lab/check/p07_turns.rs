//! P7: every turn is in one terminal state on which exit code, API and journal agree; nothing reports
//! "running" without a live process; an interrupted run is never reported as `timeout` or `completed`.

use super::evidence::{Event, SentPrompt};
use super::story::{Story, Turn};
use super::withdrawn::is_withdrawn;
use super::{Case, Found};
use serde_json::Value;

const P: &str = "P7";

const ENDS: &[&str] = &["completed", "interrupted", "failed", "limited", "lost"];

pub fn check(case: &Case<'_>, found: &mut Found) {
    for story in &case.stories {
        for turn in &story.turns {
            one_end(turn, story, found);
        }
        one_at_a_time(story, found);
        if let Some(turn) = story.open_turn()
            && !story.waits_for_user()
        {
            found.add(
                P,
                story.agent,
                format!("turn {} never ended", turn.id),
                &turn.started,
            );
        }
    }
    for sent in &case.evidence.prompts {
        told(case, sent, found);
    }
    for client in &case.evidence.clients {
        printed(case, client, found);
    }
    for status in &case.evidence.status {
        if let Some(story) = case.story(&status.agent) {
            shown(case, story, &status.show, found);
        }
    }
}

fn one_end(turn: &Turn<'_>, story: &Story<'_>, found: &mut Found) {
    let mut wrong = |what: String, at: &[u64]| found.add(P, story.agent, what, at);
    let ends: Vec<u64> = turn.ended.iter().map(|(seq, _)| *seq).collect();
    if turn.started.len() != 1 {
        let at: Vec<u64> = turn.started.iter().chain(&ends).copied().collect();
        wrong(
            format!("turn {} began {} times", turn.id, turn.started.len()),
            &at,
        );
    }
    if ends.len() > 1 {
        wrong(
            format!("turn {} ended {} times", turn.id, ends.len()),
            &ends,
        );
    }
    let Some((ended, status)) = turn.ended.first() else {
        return;
    };
    if !ENDS.contains(status) {
        wrong(format!("turn {} ended as `{status}`", turn.id), &ends);
    }
    if *status != "completed" {
        return;
    }
    let own = story
        .events
        .iter()
        .filter(|event| event.turn.as_deref() == Some(turn.id));
    let own: Vec<_> = own.filter(|event| event.seq < *ended).collect();
    // A superseded reply was requested again.
    let is_reply = |event: &&&Event| event.is("message") && event.text("status") != "superseded";
    let last = own.iter().rev().find(is_reply);
    if last.is_some_and(|message| message.text("status") != "complete") {
        wrong(
            format!(
                "turn {} is completed, but its last reply was interrupted",
                turn.id
            ),
            &ends,
        );
    }
    let mut notices = own.iter().filter(|event| event.is("notice"));
    if notices.any(|notice| notice.text("cause") == "interrupted") {
        wrong(
            format!(
                "turn {} was interrupted, but is reported as completed",
                turn.id
            ),
            &ends,
        );
    }
}

fn one_at_a_time(story: &Story<'_>, found: &mut Found) {
    let mut open: Option<&str> = None;
    for event in story.events {
        match (event.kind.as_str(), open) {
            ("turn_started", Some(other)) => {
                let what = format!("a turn began while turn {other} was in progress");
                found.add(P, story.agent, what, &[event.seq]);
            }
            ("turn_started", None) => open = event.turn.as_deref(),
            ("turn_ended", _) => open = None,
            _ => {}
        }
    }
}

/// The exit code of a terminal state.
fn exit_of(status: &str) -> Option<i64> {
    match status {
        "completed" => Some(0),
        "failed" | "lost" => Some(1),
        "set_aside" | "removed" => Some(3),
        "limited" => Some(5),
        "waiting" => Some(6),
        "interrupted" => Some(130),
        _ => None,
    }
}

/// What a sender was told is what the journal says.
fn told(case: &Case<'_>, sent: &SentPrompt, found: &mut Found) {
    let (Some(status), Some(story)) = (sent.status.as_deref(), case.story(&sent.agent)) else {
        return;
    };
    agrees(status, sent.exit, &format!("`{}`", sent.text), story, found);
    let by_id = sent.prompt.as_deref().and_then(|id| story.prompts.get(id));
    let by_key = || {
        let key = sent.key.as_deref()?;
        story
            .prompts
            .values()
            .find(|prompt| prompt.key == Some(key))
    };
    let Some(prompt) = by_id.or_else(by_key) else {
        return;
    };
    let turn = prompt.taken.last().and_then(|(_, turn)| story.turn(turn));
    ended_so(status, turn, story, found);
}

fn agrees(status: &str, exit: Option<i64>, whose: &str, story: &Story<'_>, found: &mut Found) {
    let due = exit_of(status);
    if let (Some(due), Some(exit)) = (due, exit)
        && due != exit
    {
        let what = format!("{whose} ended as {status}, with exit code {exit}");
        found.add(P, story.agent, what, &[]);
    }
}

fn ended_so(status: &str, turn: Option<&Turn<'_>>, story: &Story<'_>, found: &mut Found) {
    if !ENDS.contains(&status) {
        return;
    }
    match turn.map(|turn| (turn, turn.ended.first())) {
        Some((_, Some((_, ended)))) if *ended == status => {}
        Some((turn, Some((seq, ended)))) => {
            let what = format!("turn {} is {ended}, but was reported as {status}", turn.id);
            found.add(P, story.agent, what, &[*seq]);
        }
        Some((turn, None)) => {
            let what = format!(
                "turn {} was reported as {status}, but has not ended",
                turn.id
            );
            found.add(P, story.agent, what, &turn.started);
        }
        None => {
            let what = format!("a prompt was reported as {status}, but no turn has it");
            found.add(P, story.agent, what, &[]);
        }
    }
}

/// The end of a turn that a command printed, and its exit code.
fn printed(case: &Case<'_>, client: &super::evidence::Client, found: &mut Found) {
    let lines = client.saw.iter().filter(|line| line["saw"] == "line");
    let mut lines =
        lines.filter_map(|line| serde_json::from_str::<Value>(line["text"].as_str()?).ok());
    let answer = lines.rfind(|line| line["turn"].is_string() && line["status"].is_string());
    let Some(answer) = answer else { return };
    let (turn, status) = (answer["turn"].as_str(), answer["status"].as_str());
    let (turn, status) = (turn.unwrap_or_default(), status.unwrap_or_default());
    let Some(story) = case.stories.iter().find(|story| story.turn(turn).is_some()) else {
        return;
    };
    ended_so(status, story.turn(turn), story, found);
    let exit = client.saw.iter().rev().find(|line| line["saw"] == "exit");
    let exit = exit.and_then(|line| line["code"].as_i64());
    agrees(
        status,
        exit,
        &format!("client {}", client.name),
        story,
        found,
    );
}

/// What the API shows when all agents are idle.
fn shown(case: &Case<'_>, story: &Story<'_>, show: &Value, found: &mut Found) {
    let Some(head) = show["head"].as_u64() else {
        return;
    };
    let then = story.up_to(head);
    let mut wrong = |what: String| found.add(P, story.agent, what, &[head]);
    let open = then.open_turn().map(|turn| turn.id);
    if show["turn"].as_str() != open {
        wrong(format!(
            "the turn in progress is {open:?}, but is shown as {}",
            show["turn"]
        ));
    }
    let last = then
        .turns
        .iter()
        // A turn whose prompt was removed did nothing, and the one before it stays the last.
        .filter(|turn| !is_withdrawn(&then, turn))
        .filter_map(|turn| Some((turn.ended.first()?, turn.id, turn.conversation)))
        .max();
    // The end of a conversation that was left is no longer shown.
    let current = show["conversation"]["id"].as_str();
    let is_left = |conversation| current.is_some_and(|current| current != conversation);
    let shown_turn = &show["last_turn"];
    if let Some(((_, status), id, conversation)) = last
        && show.get("last_turn").is_some()
    {
        let agrees = match is_left(conversation) {
            true => shown_turn.is_null(),
            false => shown_turn["status"] == *status && shown_turn["id"] == id,
        };
        if !agrees {
            wrong(format!(
                "the last turn is {id}, {status}, in {conversation}, but is shown as {shown_turn}"
            ));
        }
    }
    let phase = show["phase"].as_str().unwrap_or_default();
    let has_work = open.is_some()
        || then
            .prompts
            .values()
            .any(|prompt| prompt.status == super::story::PromptStatus::Waiting);
    if phase == "running" && !has_work {
        wrong("no turn is in progress, but it is shown as running".to_owned());
    }
    let rest: Vec<_> = case
        .evidence
        .processes
        .iter()
        .filter(|it| it.when == "rest")
        .collect();
    if rest.is_empty() {
        return;
    }
    let pid = show["process"]["pid"].as_u64();
    let alive = rest
        .iter()
        .any(|process| Some(process.pid) == pid && !process.is_zombie());
    let says_up = matches!(show["process"]["state"].as_str(), Some("up" | "adopted"));
    if says_up && !alive {
        wrong(format!("process {pid:?} is shown as up, but is not alive"));
    }
    if phase == "running" && !alive {
        wrong("it is shown as running, but no process runs it".to_owned());
    }
}
