//! What clients saw, what was told to whom, turns, interrupts and resets.

use super::breaks;
use super::good::{FIRST, SECOND};
use super::is_fine;
use serde_json::json;

// P2

#[test]
fn a_gap_in_the_journal() {
    breaks("P2", "is where", |run_dir| {
        run_dir.events.remove(4);
        run_dir.clients.clear();
    });
    breaks("P2", "damaged", |run_dir| run_dir.said = Some(3));
    breaks("P2", "could not be exported", |run_dir| {
        run_dir.run["agents"]
            .as_array_mut()
            .unwrap()
            .push(json!({"id": "other", "name": "other"}));
    });
}

#[test]
fn an_event_that_was_seen_and_is_not_there() {
    breaks("P2", "which does not exist", |run_dir| {
        let saw = run_dir.clients.get_mut("1").unwrap();
        let mut last = saw[saw.len() - 2].clone();
        last["seq"] = json!(1000);
        saw.push(last);
    });
}

#[test]
fn an_event_that_was_seen_as_another() {
    breaks("P2", "with other content", |run_dir| {
        run_dir.clients.get_mut("1").unwrap()[3]["body"] = json!({"other": 1});
    });
}

#[test]
fn twice_out_of_order_or_left_out() {
    breaks("P2", "after event", |run_dir| {
        let saw = run_dir.clients.get_mut("1").unwrap();
        let again = saw[3].clone();
        saw.insert(4, again);
    });
    breaks("P2", "directly after event", |run_dir| {
        run_dir.clients.get_mut("1").unwrap().remove(3);
    });
    breaks("P2", "directly after event", |run_dir| {
        // It came back with its cursor, and one was left out.
        let saw = run_dir.clients.get_mut("1").unwrap();
        let at = saw
            .iter()
            .position(|line| line["saw"] == "connected")
            .unwrap();
        saw.remove(at + 1);
    });
}

#[test]
fn what_a_command_prints_counts_too() {
    let line = |run_dir: &super::RunDir, at: usize| json!({"at": 1, "saw": "line", "text": run_dir.events[at].to_string()});
    is_fine(|run_dir| {
        let lines = [line(run_dir, 3), line(run_dir, 7)];
        run_dir.clients.get_mut("2").unwrap().splice(1..1, lines);
    });
    breaks("P2", "after event", |run_dir| {
        let lines = [line(run_dir, 7), line(run_dir, 3)];
        run_dir.clients.get_mut("2").unwrap().splice(1..1, lines);
    });
}

// P5

#[test]
fn text_that_was_seen_and_is_nowhere() {
    breaks("P5", "which is nowhere", |run_dir| {
        let saw = run_dir.clients.get_mut("1").unwrap();
        let delta = saw.iter_mut().find(|line| line["saw"] == "delta").unwrap();
        delta["text"] = json!("half a word and more");
    });
    breaks("P5", "which is nowhere", |run_dir| {
        let saw = run_dir.clients.get_mut("1").unwrap();
        let delta = saw.iter_mut().find(|line| line["saw"] == "delta").unwrap();
        delta["request"] = json!({"incarnation": 9, "n": 9});
    });
    breaks("P5", "was answered", |run_dir| {
        let answer = json!({"turn": "t-3", "status": "interrupted", "text": "other"});
        run_dir.clients.get_mut("2").unwrap()[1]["text"] = json!(answer.to_string());
    });
}

#[test]
fn a_reply_that_was_cut_and_is_not_marked() {
    breaks("P5", "is marked `complete`", |run_dir| {
        run_dir.event("message", "half a")["body"]["status"] = json!("complete");
    });
    breaks("P5", "is 2 messages", |run_dir| {
        let at = run_dir.find("message", "all of it");
        run_dir.again(at);
    });
    breaks("P5", "its reply is missing", |run_dir| {
        run_dir.remove("message", "all of it");
    });
}

// P6

#[test]
fn a_turn_that_goes_on_after_its_end() {
    breaks("P6", "continues with `request_sent`", |run_dir| {
        let at = run_dir.find("turn_ended", "interrupted");
        let sent = json!({"request": {"incarnation": 2, "n": 9}, "purpose": "answer"});
        run_dir.insert(at, "request_sent", sent);
    });
}

#[test]
fn a_cancelled_task_that_goes_on_by_itself() {
    breaks("P6", "answers no prompt", |run_dir| {
        run_dir.remove("prompts_taken", "p-4");
    });
}

#[test]
fn a_call_that_begins_after_the_interrupt() {
    let in_the_interrupted_turn = |run_dir: &mut super::RunDir, at: u64| {
        for event in &mut run_dir.events {
            if event["turn"] == "t-1" && event["kind"] == "message" {
                event["turn"] = json!("t-3");
            }
        }
        run_dir.effects[0]["at"] = json!(at);
    };
    breaks("P6", "began after the interrupt", |run_dir| {
        in_the_interrupted_turn(run_dir, 10)
    });
}

#[test]
fn a_queued_prompt_that_is_not_said_to_wait() {
    breaks("P6", "prompts are queued", |run_dir| {
        run_dir.status[0]["show"]["queued"] = json!(1)
    });
}

// P7

#[test]
fn two_ends() {
    breaks("P7", "ended 2 times", |run_dir| {
        let at = run_dir.find("turn_ended", "interrupted");
        run_dir.again(at);
    });
    breaks("P7", "ended as `timeout`", |run_dir| {
        run_dir.event("turn_ended", "interrupted")["body"]["status"] = json!("timeout");
    });
}

#[test]
fn a_turn_that_never_ends() {
    breaks("P7", "never ended", |run_dir| {
        let end = run_dir.events.len() - 2;
        run_dir.cut(end);
    });
    breaks("P7", "began while turn", |run_dir| {
        run_dir.remove("turn_ended", "interrupted");
    });
}

#[test]
fn an_interrupted_turn_that_reads_as_completed() {
    breaks("P7", "reported as completed", |run_dir| {
        run_dir.event("turn_ended", "interrupted")["body"]["status"] = json!("completed");
    });
}

#[test]
fn told_otherwise() {
    breaks("P7", "was reported as completed", |run_dir| {
        run_dir.prompts[2]["status"] = json!("completed");
        run_dir.prompts[2]["exit"] = json!(0);
    });
    breaks("P7", "with exit code 0", |run_dir| {
        run_dir.prompts[2]["exit"] = json!(0)
    });
    breaks("P7", "with exit code 124", |run_dir| {
        run_dir.clients.get_mut("2").unwrap()[2]["code"] = json!(124);
    });
}

#[test]
fn shown_otherwise() {
    breaks("P7", "the last turn is t-5", |run_dir| {
        run_dir.status[0]["show"]["last_turn"]["status"] = json!("failed");
    });
    breaks("P7", "the turn in progress is None", |run_dir| {
        run_dir.status[0]["show"]["turn"] = json!("t-5");
    });
    breaks("P7", "shown as running", |run_dir| {
        run_dir.status[0]["show"]["phase"] = json!("running")
    });
    breaks("P7", "is not alive", |run_dir| {
        run_dir
            .processes
            .retain(|process| process["role"] != "runtime");
    });
}

// P12

#[test]
fn a_switch_that_is_not_whole() {
    breaks("P12", "none took its place", |run_dir| {
        let at = run_dir.find("conversation_sealed", "o-1");
        run_dir.again(at);
    });
    breaks("P12", "none took its place", |run_dir| {
        // Another event came in between: it was not one commit.
        let at = run_dir.find("conversation_sealed", "o-1");
        run_dir.insert(at, "prompt_queued", json!({"prompt": "p-6"}));
    });
    breaks("P12", "the reset does not say so", |run_dir| {
        let at = run_dir.find("conversation_began", "o-1");
        run_dir.insert(
            at,
            "incarnation_began",
            json!({"incarnation": 3, "after": "crash"}),
        );
    });
    breaks("P12", "was not sealed", |run_dir| {
        run_dir.remove("conversation_sealed", "o-2");
    });
}

#[test]
fn an_op_that_was_carried_out_twice() {
    breaks("P12", "began 2 times", |run_dir| {
        let at = run_dir.find("reset_began", "o-1");
        run_dir.again(at);
    });
    breaks("P12", "ended more than once", |run_dir| {
        let at = run_dir.find("reset_ended", "o-1");
        run_dir.insert(
            at,
            "reset_withdrawn",
            json!({"op": "o-1", "why": "still_active"}),
        );
    });
    breaks("P12", "out of order", |run_dir| {
        let at = run_dir.find("reset_stepped", r#""op":"o-1","step":"stop""#);
        run_dir.again(at);
    });
}

#[test]
fn a_reset_that_nobody_finishes() {
    breaks("P12", "neither ended nor withdrawn", |run_dir| {
        run_dir.remove("reset_ended", "o-1");
    });
    breaks("P12", "point of no return", |run_dir| {
        let ended = run_dir.event("reset_ended", "o-1");
        ended["kind"] = json!("reset_withdrawn");
        ended["body"] = json!({"op": "o-1", "why": "still_active"});
    });
}

#[test]
fn a_receipt_that_is_not_true() {
    breaks("P12", "differs from the journal", |run_dir| {
        let order = run_dir
            .orders
            .iter_mut()
            .find(|order| order["op"] == "o-1")
            .unwrap();
        order["answer"]["new"] = json!(FIRST);
    });
    breaks("P12", "its receipt lists", |run_dir| {
        let order = run_dir
            .orders
            .iter_mut()
            .find(|order| order["op"] == "o-1")
            .unwrap();
        order["answer"]["set_aside"] = json!([]);
    });
    breaks("P12", "is not on record", |run_dir| {
        run_dir
            .orders
            .push(json!({"agent": "coder", "verb": "reset", "op": "o-9",
            "acknowledged": true, "answer": {"op": "o-9"}}));
    });
    breaks("P12", "which was not current", |run_dir| {
        run_dir.event("reset_ended", "o-1")["body"]["old"] = json!(SECOND);
    });
}

#[test]
fn prompts_that_do_not_come_back() {
    breaks("P12", "was not queued again", |run_dir| {
        let at = run_dir.find("prompts_requeued", "p-5");
        run_dir.events.truncate(at + 4);
        run_dir.remove("prompts_requeued", "p-5");
    });
    breaks("P12", "waits in a conversation that was left", |run_dir| {
        let at = run_dir.find("reset_ended", "o-1");
        run_dir.cut(at + 1);
        run_dir.remove("prompts_set_aside", "p-5");
    });
}

#[test]
fn two_conversations_at_once() {
    breaks("P12", "not the current one", |run_dir| {
        run_dir.event("turn_ended", "interrupted")["conversation"] = json!(FIRST);
        let at = run_dir
            .events
            .iter()
            .position(|event| event["turn"] == "t-5")
            .unwrap();
        run_dir.events[at]["conversation"] = json!(SECOND);
    });
    breaks("P12", "is shown", |run_dir| {
        run_dir.status[0]["show"]["conversation"]["id"] = json!(SECOND);
    });
    breaks("P12", "the pointer has moved", |run_dir| {
        run_dir.status[0]["show"]["generation"] = json!(4);
    });
}

/// An interrupt that ended the turn after the one that it was meant for.
#[test]
fn an_interrupt_of_another_turn() {
    breaks("P6", "no client interrupted it", |run_dir| {
        run_dir.orders.retain(|order| order["verb"] != "interrupt");
    });
    let later = |run_dir: &mut super::RunDir| {
        for kind in ["turn_started", "turn_ended"] {
            for event in &mut run_dir.events {
                if event["kind"] == kind && event["turn"] == "t-3" {
                    event["at"] = json!(100);
                }
            }
        }
    };
    breaks("P6", "no client interrupted it", |run_dir| {
        later(run_dir);
        for order in &mut run_dir.orders {
            (order["at"], order["answered_at"]) = (json!(10), json!(99_000));
        }
        run_dir.clients.clear();
    });
    // The request of a client that was killed may arrive later.
    is_fine(|run_dir| {
        later(run_dir);
        for order in &mut run_dir.orders {
            if order["verb"] == "interrupt" {
                order["acknowledged"] = json!(false);
                (order["at"], order["answered_at"]) = (json!(10), json!(99_000));
            }
        }
        run_dir.clients.clear();
    });
    is_fine(|run_dir| {
        run_dir.orders.retain(|order| order["verb"] != "interrupt");
        run_dir
            .faults
            .push(json!({"at": 0, "role": "runtime", "what": "INT"}));
    });
}
