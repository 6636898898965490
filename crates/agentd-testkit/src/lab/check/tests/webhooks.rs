//! What a webhook received, compared with the journal.

use super::run_dir::{AGENT, RunDir};
use super::{breaks, is_fine};
use serde_json::{Value, json};

const BINDING: &str = "00000000-0000-7000-8000-0000000000b1";

fn push(run_dir: &mut RunDir, turn: Option<&str>, kind: &str, body: Value) -> u64 {
    let last = run_dir.events.last().cloned().unwrap_or_default();
    let seq = last["seq"].as_u64().unwrap_or_default() + 1;
    let mut event = json!({"seq": seq, "at": 0, "v": 1, "kind": kind, "body": body,
                           "conversation": last["conversation"]});
    if let Some(turn) = turn {
        event["turn"] = json!(turn);
    }
    run_dir.events.push(event);
    seq
}

/// A turn that answers a prompt of the binding; returns its end.
fn answered(run_dir: &mut RunDir, n: u32) -> u64 {
    let (prompt, turn) = (format!("p-{n}"), format!("t-{n}"));
    let turn = Some(turn.as_str());
    push(
        run_dir,
        None,
        "prompt_queued",
        json!({"prompt": prompt, "key": format!("k-{n}"), "mode": "queue"}),
    );
    let words = json!([{"type": "text", "text": "hello"}]);
    push(
        run_dir,
        None,
        "prompt",
        json!({"prompt": prompt, "blocks": words}),
    );
    push(
        run_dir,
        None,
        "prompt_routed",
        json!({"prompt": prompt, "binding": BINDING}),
    );
    push(run_dir, turn, "turn_started", json!({}));
    push(run_dir, turn, "prompts_taken", json!({"prompts": [prompt]}));
    push(
        run_dir,
        turn,
        "turn_ended",
        json!({"status": "interrupted"}),
    )
}

fn sent(run_dir: &mut RunDir, seq: u64, accepted: bool) {
    let id = format!("bnd_{}_{seq}", BINDING.replace('-', ""));
    let raw = format!("about {seq}");
    let line = json!({"id": id, "accepted": accepted, "signed": true, "raw": raw});
    run_dir.webhooks.push(line);
}

/// The violations of this promise alone: the turns made up here are too short for the others.
fn found(change: impl FnOnce(&mut RunDir)) -> Vec<String> {
    let mut run_dir = super::good();
    change(&mut run_dir);
    let found = run_dir.check().into_iter();
    let own = found.filter(|it| it.promise == "P17");
    own.map(|it| it.what).collect()
}

#[test]
fn messages_in_order_even_if_repeated_are_fine() {
    is_fine(|_| {});
    let found = found(|run_dir| {
        let first = answered(run_dir, 1);
        let second = answered(run_dir, 2);
        sent(run_dir, first, false);
        sent(run_dir, first, true);
        sent(run_dir, first, true);
        sent(run_dir, second, true);
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn lost_invented_unsigned_and_unordered_messages_are_found() {
    breaks("P17", "was lost", |run_dir| {
        answered(run_dir, 1);
        sent(run_dir, 1, false);
    });
    breaks("P17", "needs none", |run_dir| {
        let first = answered(run_dir, 1);
        sent(run_dir, first, true);
        sent(run_dir, first - 1, true);
    });
    breaks("P17", "before an earlier one", |run_dir| {
        let first = answered(run_dir, 1);
        let second = answered(run_dir, 2);
        sent(run_dir, second, true);
        sent(run_dir, first, true);
    });
    breaks("P17", "two contents", |run_dir| {
        let first = answered(run_dir, 1);
        sent(run_dir, first, true);
        sent(run_dir, first, true);
        run_dir.webhooks[1]["raw"] = json!("another");
    });
    breaks("P17", "not signed", |run_dir| {
        let first = answered(run_dir, 1);
        sent(run_dir, first, true);
        run_dir.webhooks[0]["signed"] = json!(false);
    });
}

fn farewell(run_dir: &mut RunDir) {
    last(run_dir, "unbound");
}

/// The messages without an answer, which are named before the farewell.
fn unanswered(run_dir: &mut RunDir) {
    last(run_dir, "unbound_removed");
}

fn last(run_dir: &mut RunDir, what: &str) {
    let id = format!("bnd_{}_{what}", BINDING.replace('-', ""));
    let line = json!({"id": id, "accepted": true, "signed": true, "raw": what});
    run_dir.webhooks.push(line);
}

#[test]
fn the_last_message_of_a_binding_comes_after_every_answer() {
    let fine = found(|run_dir| {
        run_dir.run["expects"]["unbound"] = json!(true);
        let first = answered(run_dir, 1);
        sent(run_dir, first, true);
        farewell(run_dir);
        farewell(run_dir);
    });
    assert!(fine.is_empty(), "{fine:#?}");
    // The daemon died after the farewell, and sends both again.
    let fine = found(|run_dir| {
        let first = answered(run_dir, 1);
        sent(run_dir, first, true);
        for _ in 0..2 {
            unanswered(run_dir);
            farewell(run_dir);
        }
    });
    assert!(fine.is_empty(), "{fine:#?}");
    breaks("P17", "after a binding's last one", |run_dir| {
        let first = answered(run_dir, 1);
        sent(run_dir, first, true);
        farewell(run_dir);
        unanswered(run_dir);
    });
    // It was refused before the farewell, which came too early then.
    breaks("P17", "after a binding's last one", |run_dir| {
        let first = answered(run_dir, 1);
        sent(run_dir, first, true);
        unanswered(run_dir);
        run_dir.webhooks[1]["accepted"] = json!(false);
        farewell(run_dir);
        unanswered(run_dir);
    });
    breaks("P17", "last message was sent before", |run_dir| {
        let first = answered(run_dir, 1);
        farewell(run_dir);
        sent(run_dir, first, true);
    });
    breaks("P17", "after a binding's last one", |run_dir| {
        let first = answered(run_dir, 1);
        sent(run_dir, first, true);
        farewell(run_dir);
        sent(run_dir, first, true);
    });
    breaks("P17", "last message of a binding was lost", |run_dir| {
        run_dir.run["expects"]["unbound"] = json!(true);
        let first = answered(run_dir, 1);
        sent(run_dir, first, true);
    });
}

/// The run of a user who wants to be notified, with these messages about the ends of its turns.
fn notified(run_dir: &mut RunDir, change: impl FnOnce(&mut Vec<Value>)) {
    run_dir.run["expects"]["notices"] = json!(true);
    let is_told = |event: &&Value| {
        let body = &event["body"];
        let is_own = body["compacts"] != true && body["withdrawn"] != true;
        event["kind"] == "turn_ended" && is_own && body["status"] != "interrupted"
    };
    let ends = run_dir.events.iter().filter(is_told);
    let mut messages: Vec<Value> = ends
        .map(|event| {
            let id = format!("msg_{}_{}", AGENT.replace('-', ""), event["seq"]);
            json!({"id": id, "accepted": true, "signed": true, "raw": event["seq"].to_string()})
        })
        .collect();
    assert!(messages.len() > 1, "the run has too few turns");
    change(&mut messages);
    run_dir.webhooks = messages;
}

#[test]
fn notifications_that_are_all_delivered_are_fine() {
    is_fine(|run_dir| notified(run_dir, |_| {}));
    // Of another run nothing is expected.
    is_fine(|run_dir| run_dir.run["expects"]["notices"] = json!(false));
}

#[test]
fn lost_invented_and_unordered_notifications_are_found() {
    breaks("P17", "was lost", |run_dir| {
        notified(run_dir, |messages| drop(messages.pop()));
    });
    breaks("P17", "was lost", |run_dir| {
        notified(run_dir, |messages| messages[0]["accepted"] = json!(false));
    });
    breaks("P17", "needs none", |run_dir| {
        notified(run_dir, |messages| {
            let id = format!("msg_{}_1", AGENT.replace('-', ""));
            messages[0]["id"] = json!(id);
        });
    });
    breaks("P17", "before an earlier one", |run_dir| {
        notified(run_dir, |messages| messages.reverse());
    });
}
