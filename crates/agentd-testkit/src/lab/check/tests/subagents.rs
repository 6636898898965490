//! Subagents and forks, as they and their parents have it on record.

use super::run_dir::{AGENT, RunDir};
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
fn with_child(run_dir: &mut RunDir) {
    let at = run_dir.find("tool_started", "call_1_1_0");
    let started = json!({"agent": CHILD, "name": "coder.1", "call": "call_1_1_0", "background": false,
                         "lease": {"tokens": 100}});
    run_dir.insert(at, "subagent_started", started);
    let spent = json!({"usage": {"input_tokens": 10, "output_tokens": 5}});
    let ended = json!({"agent": CHILD, "outcome": "completed", "spent": spent});
    run_dir.insert(at + 1, "subagent_ended", ended);
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
    run_dir.others.insert(CHILD.to_owned(), events);
    let messages = json!([{"role": "user", "content": [{"type": "text", "text": "look"}]}]);
    run_dir.model.push(
        json!({"at": 50, "n": 50, "agent": CHILD, "body": {"messages": messages},
                             "accepted": true, "violations": [], "finished": true}),
    );
    let agents = run_dir.run["agents"].as_array_mut().unwrap();
    agents.push(json!({"id": CHILD, "name": "coder.1"}));
    // Which of the two ran a tool is not left open.
    for effect in &mut run_dir.effects {
        effect["agent"] = json!(AGENT);
    }
}

#[track_caller]
fn subagents_break(words: &str, change: impl FnOnce(&mut RunDir)) {
    breaks("P14", words, |run_dir| {
        with_child(run_dir);
        change(run_dir);
    });
}

fn of_child<'a>(run_dir: &'a mut RunDir, kind: &str) -> &'a mut Value {
    let events = run_dir.others.get_mut(CHILD).unwrap();
    let found = events.iter_mut().find(|it| it["kind"] == kind);
    found.unwrap()
}

fn without(run_dir: &mut RunDir, kind: &str) {
    let events = run_dir.others.get_mut(CHILD).unwrap();
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
    subagents_break("was reported 2 times", |run_dir| {
        let at = run_dir.find("subagent_ended", CHILD);
        run_dir.again(at);
    });
    subagents_break("was not reported to its parent", |run_dir| {
        run_dir.remove("subagent_ended", CHILD);
    });
    subagents_break("was started twice", |run_dir| {
        let at = run_dir.find("subagent_started", CHILD);
        run_dir.again(at);
    });
}

#[test]
fn an_end_that_was_another() {
    subagents_break(
        "ended as failed, but was reported as completed",
        |run_dir| {
            of_child(run_dir, "turn_ended")["body"]["status"] = json!("failed");
        },
    );
    subagents_break("but has no journal", |run_dir| {
        run_dir.others.clear();
        run_dir.model.pop();
        run_dir.run["agents"].as_array_mut().unwrap().pop();
    });
}

#[test]
fn the_answer_of_one_in_the_background() {
    let behind = |run_dir: &mut RunDir| {
        let started = run_dir.event("subagent_started", CHILD);
        started["body"]["background"] = json!(true);
    };
    let answer = json!({"cause": "task_ended", "text": "The subagent coder.1 was interrupted."});
    subagents_break("came 0 times", behind);
    is_fine(|run_dir| {
        with_child(run_dir);
        behind(run_dir);
        let last = run_dir.events.len() - 1;
        run_dir.insert(last, "notice", answer.clone());
    });
    subagents_break("came 2 times", |run_dir| {
        behind(run_dir);
        let last = run_dir.events.len() - 1;
        run_dir.insert(last, "notice", answer.clone());
        run_dir.again(last + 1);
    });
    subagents_break("answers again", |run_dir| {
        let last = run_dir.events.len() - 1;
        run_dir.insert(last, "notice", answer.clone());
    });
}

#[test]
fn one_that_nobody_owns() {
    subagents_break("does not exist", |run_dir| {
        of_child(run_dir, "subagent_of")["body"]["parent"] = json!("somebody");
    });
    subagents_break("does not know it", |run_dir| {
        run_dir.remove("subagent_started", CHILD);
    });
    subagents_break("recorded 0 times", |run_dir| {
        without(run_dir, "parent_told")
    });
}

#[test]
fn a_budget_that_does_not_add_up() {
    subagents_break("is charged 15", |run_dir| {
        of_child(run_dir, "request_ended")["body"]["usage"]["output_tokens"] = json!(6);
    });
    subagents_break("lease was 14", |run_dir| {
        run_dir.event("subagent_started", CHILD)["body"]["lease"]["tokens"] = json!(14);
    });
}

#[test]
fn a_fork_that_is_not_told_or_has_what_it_should_not() {
    let forked = |run_dir: &mut RunDir, told: usize| {
        let began = run_dir.event("conversation_began", "create");
        began["body"]["source"] = json!("fork");
        let at = run_dir.find("conversation_began", "fork");
        for _ in 0..told {
            let notice = json!({"cause": "branched", "text": "You are a fork."});
            run_dir.insert(at, "notice", notice);
        }
    };
    breaks("P14", "told 0 times", |run_dir| forked(run_dir, 0));
    breaks("P14", "told 2 times", |run_dir| forked(run_dir, 2));
    breaks("P14", "begins with `task_started`", |run_dir| {
        forked(run_dir, 1);
        let at = run_dir.find("conversation_began", "fork");
        run_dir.insert(at, "task_started", json!({"task": "k-9", "call": "x"}));
    });
}
