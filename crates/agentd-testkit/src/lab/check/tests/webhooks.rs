//! What a webhook received, compared with the journal.

use super::run_dir::RunDir;
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
