//! What clients saw, what was told to whom, turns, interrupts and resets.

use super::breaks;
use super::good::{FIRST, SECOND};
use super::is_fine;
use serde_json::json;

// P2

#[test]
fn a_gap_in_the_journal() {
    breaks("P2", "stands where", |folder| {
        folder.events.remove(4);
        folder.clients.clear();
    });
    breaks("P2", "damaged", |folder| folder.said = Some(3));
    breaks("P2", "could not be exported", |folder| {
        folder.run["agents"]
            .as_array_mut()
            .unwrap()
            .push(json!({"id": "other", "name": "other"}));
    });
}

#[test]
fn an_event_that_was_seen_and_is_not_there() {
    breaks("P2", "which is not there", |folder| {
        let saw = folder.clients.get_mut("1").unwrap();
        let mut last = saw[saw.len() - 2].clone();
        last["seq"] = json!(1000);
        saw.push(last);
    });
}

#[test]
fn an_event_that_was_seen_as_another() {
    breaks("P2", "as another than it is", |folder| {
        folder.clients.get_mut("1").unwrap()[3]["body"] = json!({"other": 1});
    });
}

#[test]
fn twice_out_of_order_or_left_out() {
    breaks("P2", "behind event", |folder| {
        let saw = folder.clients.get_mut("1").unwrap();
        let again = saw[3].clone();
        saw.insert(4, again);
    });
    breaks("P2", "right after event", |folder| {
        folder.clients.get_mut("1").unwrap().remove(3);
    });
    breaks("P2", "right after event", |folder| {
        // It came back with its cursor, and one was left out.
        let saw = folder.clients.get_mut("1").unwrap();
        let at = saw
            .iter()
            .position(|line| line["saw"] == "connected")
            .unwrap();
        saw.remove(at + 1);
    });
}

#[test]
fn what_a_command_prints_counts_too() {
    let line = |folder: &super::Folder, at: usize| json!({"at": 1, "saw": "line", "text": folder.events[at].to_string()});
    is_fine(|folder| {
        let lines = [line(folder, 3), line(folder, 7)];
        folder.clients.get_mut("2").unwrap().splice(1..1, lines);
    });
    breaks("P2", "behind event", |folder| {
        let lines = [line(folder, 7), line(folder, 3)];
        folder.clients.get_mut("2").unwrap().splice(1..1, lines);
    });
}

// P5

#[test]
fn text_that_was_seen_and_is_nowhere() {
    breaks("P5", "and it is nowhere", |folder| {
        let saw = folder.clients.get_mut("1").unwrap();
        let delta = saw.iter_mut().find(|line| line["saw"] == "delta").unwrap();
        delta["text"] = json!("half a word and more");
    });
    breaks("P5", "and it is nowhere", |folder| {
        let saw = folder.clients.get_mut("1").unwrap();
        let delta = saw.iter_mut().find(|line| line["saw"] == "delta").unwrap();
        delta["request"] = json!({"incarnation": 9, "n": 9});
    });
    breaks("P5", "was answered", |folder| {
        let answer = json!({"turn": "t-3", "status": "interrupted", "text": "other"});
        folder.clients.get_mut("2").unwrap()[1]["text"] = json!(answer.to_string());
    });
}

#[test]
fn a_reply_that_was_cut_and_is_not_marked() {
    breaks("P5", "is marked `complete`", |folder| {
        folder.event("message", "half a")["body"]["status"] = json!("complete");
    });
    breaks("P5", "is 2 messages", |folder| {
        let at = folder.find("message", "all of it");
        folder.again(at);
    });
    breaks("P5", "its reply is not there", |folder| {
        folder.remove("message", "all of it");
    });
}

// P6

#[test]
fn a_turn_that_goes_on_after_its_end() {
    breaks("P6", "goes on with `request_sent`", |folder| {
        let at = folder.find("turn_ended", "interrupted");
        let sent = json!({"request": {"incarnation": 2, "n": 9}, "purpose": "answer"});
        folder.insert(at, "request_sent", sent);
    });
}

#[test]
fn a_cancelled_task_that_goes_on_by_itself() {
    breaks("P6", "answers nobody", |folder| {
        folder.remove("prompts_taken", "p-4");
    });
}

#[test]
fn a_call_that_begins_after_the_interrupt() {
    let in_the_interrupted_turn = |folder: &mut super::Folder, at: u64| {
        for event in &mut folder.events {
            if event["turn"] == "t-1" && event["kind"] == "message" {
                event["turn"] = json!("t-3");
            }
        }
        folder.effects[0]["at"] = json!(at);
    };
    breaks("P6", "began after the interrupt", |folder| {
        in_the_interrupted_turn(folder, 10)
    });
}

#[test]
fn a_queued_prompt_that_is_not_said_to_wait() {
    breaks("P6", "prompts wait", |folder| {
        folder.status[0]["show"]["queued"] = json!(1)
    });
}

// P7

#[test]
fn two_ends() {
    breaks("P7", "ended 2 times", |folder| {
        let at = folder.find("turn_ended", "interrupted");
        folder.again(at);
    });
    breaks("P7", "ended as `timeout`", |folder| {
        folder.event("turn_ended", "interrupted")["body"]["status"] = json!("timeout");
    });
}

#[test]
fn a_turn_that_never_ends() {
    breaks("P7", "never ended", |folder| {
        let end = folder.events.len() - 2;
        folder.cut(end);
    });
    breaks("P7", "began while turn", |folder| {
        folder.remove("turn_ended", "interrupted");
    });
}

#[test]
fn an_interrupted_turn_that_reads_as_completed() {
    breaks("P7", "reads as completed", |folder| {
        folder.event("turn_ended", "interrupted")["body"]["status"] = json!("completed");
    });
}

#[test]
fn told_otherwise() {
    breaks("P7", "was told as completed", |folder| {
        folder.prompts[2]["status"] = json!("completed");
        folder.prompts[2]["exit"] = json!(0);
    });
    breaks("P7", "with exit code 0", |folder| {
        folder.prompts[2]["exit"] = json!(0)
    });
    breaks("P7", "with exit code 124", |folder| {
        folder.clients.get_mut("2").unwrap()[2]["code"] = json!(124);
    });
}

#[test]
fn shown_otherwise() {
    breaks("P7", "the last turn is t-5", |folder| {
        folder.status[0]["show"]["last_turn"]["status"] = json!("failed");
    });
    breaks("P7", "the turn under way is None", |folder| {
        folder.status[0]["show"]["turn"] = json!("t-5");
    });
    breaks("P7", "shown as running", |folder| {
        folder.status[0]["show"]["phase"] = json!("running")
    });
    breaks("P7", "is not alive", |folder| {
        folder
            .processes
            .retain(|process| process["role"] != "runtime");
    });
}

// P12

#[test]
fn a_switch_that_is_not_whole() {
    breaks("P12", "none took its place", |folder| {
        let at = folder.find("conversation_sealed", "o-1");
        folder.again(at);
    });
    breaks("P12", "none took its place", |folder| {
        // Somebody else's event came in between: it was not one commit.
        let at = folder.find("conversation_sealed", "o-1");
        folder.insert(at, "prompt_queued", json!({"prompt": "p-6"}));
    });
    breaks("P12", "the reset does not say so", |folder| {
        let at = folder.find("conversation_began", "o-1");
        folder.insert(
            at,
            "incarnation_began",
            json!({"incarnation": 3, "after": "crash"}),
        );
    });
    breaks("P12", "was not sealed", |folder| {
        folder.remove("conversation_sealed", "o-2");
    });
}

#[test]
fn an_op_that_was_carried_out_twice() {
    breaks("P12", "began 2 times", |folder| {
        let at = folder.find("reset_began", "o-1");
        folder.again(at);
    });
    breaks("P12", "ended more than once", |folder| {
        let at = folder.find("reset_ended", "o-1");
        folder.insert(
            at,
            "reset_withdrawn",
            json!({"op": "o-1", "why": "still_active"}),
        );
    });
    breaks("P12", "out of order", |folder| {
        let at = folder.find("reset_stepped", r#""op":"o-1","step":"stop""#);
        folder.again(at);
    });
}

#[test]
fn a_reset_that_nobody_finishes() {
    breaks("P12", "neither ended nor withdrawn", |folder| {
        folder.remove("reset_ended", "o-1");
    });
    breaks("P12", "point of no return", |folder| {
        let ended = folder.event("reset_ended", "o-1");
        ended["kind"] = json!("reset_withdrawn");
        ended["body"] = json!({"op": "o-1", "why": "still_active"});
    });
}

#[test]
fn a_receipt_that_is_not_true() {
    breaks("P12", "says another thing", |folder| {
        let order = folder
            .orders
            .iter_mut()
            .find(|order| order["op"] == "o-1")
            .unwrap();
        order["answer"]["new"] = json!(FIRST);
    });
    breaks("P12", "its receipt lists", |folder| {
        let order = folder
            .orders
            .iter_mut()
            .find(|order| order["op"] == "o-1")
            .unwrap();
        order["answer"]["set_aside"] = json!([]);
    });
    breaks("P12", "is not on record", |folder| {
        folder
            .orders
            .push(json!({"agent": "coder", "verb": "reset", "op": "o-9",
            "acknowledged": true, "answer": {"op": "o-9"}}));
    });
    breaks("P12", "which was not current", |folder| {
        folder.event("reset_ended", "o-1")["body"]["old"] = json!(SECOND);
    });
}

#[test]
fn prompts_that_do_not_come_back() {
    breaks("P12", "was not queued again", |folder| {
        let at = folder.find("prompts_requeued", "p-5");
        folder.events.truncate(at + 4);
        folder.remove("prompts_requeued", "p-5");
    });
    breaks("P12", "waits in a conversation that was left", |folder| {
        let at = folder.find("reset_ended", "o-1");
        folder.cut(at + 1);
        folder.remove("prompts_set_aside", "p-5");
    });
}

#[test]
fn two_conversations_at_once() {
    breaks("P12", "not the current one", |folder| {
        folder.event("turn_ended", "interrupted")["conversation"] = json!(FIRST);
        let at = folder
            .events
            .iter()
            .position(|event| event["turn"] == "t-5")
            .unwrap();
        folder.events[at]["conversation"] = json!(SECOND);
    });
    breaks("P12", "is shown", |folder| {
        folder.status[0]["show"]["conversation"]["id"] = json!(SECOND);
    });
    breaks("P12", "the pointer has moved", |folder| {
        folder.status[0]["show"]["generation"] = json!(4);
    });
}

/// An interrupt that ended the turn after the one that it was meant for.
#[test]
fn an_interrupt_of_another_turn() {
    breaks("P6", "nobody interrupted it", |folder| {
        folder.orders.retain(|order| order["verb"] != "interrupt");
    });
    let later = |folder: &mut super::Folder| {
        for kind in ["turn_started", "turn_ended"] {
            for event in &mut folder.events {
                if event["kind"] == kind && event["turn"] == "t-3" {
                    event["at"] = json!(100);
                }
            }
        }
    };
    breaks("P6", "nobody interrupted it", |folder| {
        later(folder);
        for order in &mut folder.orders {
            (order["at"], order["answered_at"]) = (json!(10), json!(99_000));
        }
        folder.clients.clear();
    });
    // Whoever asked and was killed may be heard later.
    is_fine(|folder| {
        later(folder);
        for order in &mut folder.orders {
            if order["verb"] == "interrupt" {
                order["acknowledged"] = json!(false);
                (order["at"], order["answered_at"]) = (json!(10), json!(99_000));
            }
        }
        folder.clients.clear();
    });
    is_fine(|folder| {
        folder.orders.retain(|order| order["verb"] != "interrupt");
        folder
            .faults
            .push(json!({"at": 0, "role": "runtime", "what": "INT"}));
    });
}
