//! Subagents and forks, as they and their parents have it on record.

use super::folder::{AGENT, Folder};
use super::{breaks, is_fine};
use serde_json::{Value, json};

const CHILD: &str = "00000000-0000-7000-8000-00000000000b";

fn event(events: &mut Vec<Value>, turn: Option<&str>, kind: &str, body: Value) {
    let mut event = json!({"seq": events.len() + 1, "at": 0, "v": 1, "kind": kind, "body": body,
                           "conversation": "cc-1"});
    if let Some(turn) = turn {
        event["turn"] = json!(turn);
    }
    events.push(event);
}

/// A good run with a subagent that was waited for.
fn with_child(folder: &mut Folder) {
    let at = folder.find("tool_started", "call_1_1_0");
    let started = json!({"agent": CHILD, "name": "coder.1", "call": "call_1_1_0", "background": false,
                         "lease": {"tokens": 100}});
    folder.insert(at, "subagent_started", started);
    let spent = json!({"usage": {"input_tokens": 10, "output_tokens": 5}});
    let ended = json!({"agent": CHILD, "outcome": "completed", "spent": spent});
    folder.insert(at + 1, "subagent_ended", ended);
    let mut events = Vec::new();
    let mut own =
        |turn: Option<&str>, kind: &str, body: Value| event(&mut events, turn, kind, body);
    own(
        None,
        "agent_created",
        json!({"name": "coder.1", "mode": "persistent"}),
    );
    own(None, "conversation_began", json!({"source": "create"}));
    let of = json!({"parent": AGENT, "call": "call_1_1_0", "prompt": "cp-1", "background": false});
    own(None, "subagent_of", of);
    own(
        None,
        "prompt_queued",
        json!({"prompt": "cp-1", "mode": "queue"}),
    );
    let blocks = json!([{"type": "text", "text": "look"}]);
    own(None, "prompt", json!({"prompt": "cp-1", "blocks": blocks}));
    own(
        None,
        "incarnation_began",
        json!({"incarnation": 1, "after": "start"}),
    );
    let turn = Some("ct-1");
    own(turn, "turn_started", json!({}));
    own(turn, "prompts_taken", json!({"prompts": ["cp-1"]}));
    let request = json!({"incarnation": 1, "n": 1});
    own(
        turn,
        "request_sent",
        json!({"request": request, "purpose": "answer"}),
    );
    let usage = json!({"input_tokens": 10, "output_tokens": 5});
    let over = json!({"request": request, "outcome": {"type": "completed"}, "usage": usage});
    own(turn, "request_ended", over);
    let blocks = json!([{"type": "text", "text": "found"}]);
    own(
        turn,
        "message",
        json!({"request": request, "status": "complete", "blocks": blocks}),
    );
    own(turn, "turn_ended", json!({"status": "completed"}));
    own(None, "parent_told", json!({}));
    folder.others.insert(CHILD.to_owned(), events);
    let messages = json!([{"role": "user", "content": [{"type": "text", "text": "look"}]}]);
    folder.model.push(
        json!({"at": 50, "n": 50, "agent": CHILD, "body": {"messages": messages},
                             "accepted": true, "violations": [], "finished": true}),
    );
    let agents = folder.run["agents"].as_array_mut().unwrap();
    agents.push(json!({"id": CHILD, "name": "coder.1"}));
    // Which of the two ran a tool is not left open.
    for effect in &mut folder.effects {
        effect["agent"] = json!(AGENT);
    }
}

#[track_caller]
fn kin_breaks(words: &str, change: impl FnOnce(&mut Folder)) {
    breaks("P14", words, |folder| {
        with_child(folder);
        change(folder);
    });
}

fn of_child<'a>(folder: &'a mut Folder, kind: &str) -> &'a mut Value {
    let events = folder.others.get_mut(CHILD).unwrap();
    let found = events.iter_mut().find(|it| it["kind"] == kind);
    found.unwrap()
}

fn without(folder: &mut Folder, kind: &str) {
    let events = folder.others.get_mut(CHILD).unwrap();
    events.retain(|it| it["kind"] != kind);
    for (index, event) in events.iter_mut().enumerate() {
        event["seq"] = json!(index + 1);
    }
}

#[test]
fn a_good_run_with_a_subagent() {
    is_fine(with_child);
}

#[test]
fn an_end_that_is_told_twice_or_never() {
    kin_breaks("was told 2 times", |folder| {
        let at = folder.find("subagent_ended", CHILD);
        folder.again(at);
    });
    kin_breaks("nobody was told", |folder| {
        folder.remove("subagent_ended", CHILD);
    });
    kin_breaks("was started twice", |folder| {
        let at = folder.find("subagent_started", CHILD);
        folder.again(at);
    });
}

#[test]
fn an_end_that_was_another() {
    kin_breaks("ended as failed, and was told as completed", |folder| {
        of_child(folder, "turn_ended")["body"]["status"] = json!("failed");
    });
    kin_breaks("and there is nothing of it", |folder| {
        folder.others.clear();
        folder.model.pop();
        folder.run["agents"].as_array_mut().unwrap().pop();
    });
}

#[test]
fn the_answer_of_one_in_the_background() {
    let behind = |folder: &mut Folder| {
        let started = folder.event("subagent_started", CHILD);
        started["body"]["background"] = json!(true);
    };
    let answer = json!({"cause": "task_ended", "text": "The subagent coder.1 was interrupted."});
    kin_breaks("came 0 times", behind);
    is_fine(|folder| {
        with_child(folder);
        behind(folder);
        let last = folder.events.len() - 1;
        folder.insert(last, "notice", answer.clone());
    });
    kin_breaks("came 2 times", |folder| {
        behind(folder);
        let last = folder.events.len() - 1;
        folder.insert(last, "notice", answer.clone());
        folder.again(last + 1);
    });
    kin_breaks("answers besides", |folder| {
        let last = folder.events.len() - 1;
        folder.insert(last, "notice", answer.clone());
    });
}

#[test]
fn one_that_nobody_owns() {
    kin_breaks("there is no such agent", |folder| {
        of_child(folder, "subagent_of")["body"]["parent"] = json!("somebody");
    });
    kin_breaks("which does not know it", |folder| {
        folder.remove("subagent_started", CHILD);
    });
    kin_breaks("noted 0 times", |folder| without(folder, "parent_told"));
}

#[test]
fn a_budget_that_does_not_add_up() {
    kin_breaks("is charged 15", |folder| {
        of_child(folder, "request_ended")["body"]["usage"]["output_tokens"] = json!(6);
    });
    kin_breaks("was given 14", |folder| {
        folder.event("subagent_started", CHILD)["body"]["lease"]["tokens"] = json!(14);
    });
}

#[test]
fn a_fork_that_is_not_told_or_has_what_it_should_not() {
    let forked = |folder: &mut Folder, told: usize| {
        let began = folder.event("conversation_began", "create");
        began["body"]["source"] = json!("fork");
        let at = folder.find("conversation_began", "fork");
        for _ in 0..told {
            let notice = json!({"cause": "branched", "text": "You are a fork."});
            folder.insert(at, "notice", notice);
        }
    };
    breaks("P14", "told 0 times", |folder| forked(folder, 0));
    breaks("P14", "told 2 times", |folder| forked(folder, 2));
    breaks("P14", "begins with `task_started`", |folder| {
        forked(folder, 1);
        let at = folder.find("conversation_began", "fork");
        folder.insert(at, "task_started", json!({"task": "k-9", "call": "x"}));
    });
}
