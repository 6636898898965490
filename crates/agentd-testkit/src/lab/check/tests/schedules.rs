//! What the journal shows about schedules.

use super::run_dir::RunDir;
use serde_json::{Value, json};

const SCHEDULE: &str = "schedule-1";

fn push(run_dir: &mut RunDir, kind: &str, at: i64, body: Value) {
    let last = run_dir.events.last().cloned().unwrap_or_default();
    let seq = last["seq"].as_u64().unwrap_or_default() + 1;
    let event = json!({"seq": seq, "at": at, "v": 1, "kind": kind, "body": body,
                       "conversation": last["conversation"]});
    run_dir.events.push(event);
}

/// Due at 2000, 3000, …
fn add(run_dir: &mut RunDir) {
    let rule = json!({"type": "every", "every_ms": 1000, "from": 1000});
    let body = json!({"schedule": SCHEDULE, "name": "s1", "rule": rule, "next": 2000});
    push(run_dir, "schedule_added", 1000, body);
}

/// A firing that is one commit, at its due time.
fn fire(run_dir: &mut RunDir, due: i64, prompt: &str) {
    fired(run_dir, (due, due), prompt);
    queued(run_dir, due, prompt);
}

fn fired(run_dir: &mut RunDir, (due, at): (i64, i64), prompt: &str) {
    let outcome = json!({"type": "fired", "prompt": prompt});
    let body = json!({"schedule": SCHEDULE, "due": due, "outcome": outcome, "next": due + 1000});
    push(run_dir, "schedule_fired", at, body);
}

fn queued(run_dir: &mut RunDir, due: i64, prompt: &str) {
    let key = format!("schedule:{SCHEDULE}:{due}");
    let body = json!({"prompt": prompt, "key": key, "mode": "queue"});
    push(run_dir, "prompt_queued", due, body);
    let blocks = json!([{"type": "text", "text": "an hour has passed"}]);
    push(
        run_dir,
        "prompt",
        due,
        json!({"prompt": prompt, "blocks": blocks}),
    );
}

/// The violations of this promise only: the prompts are not answered.
#[track_caller]
fn finds(words: Option<&str>, change: impl FnOnce(&mut RunDir)) {
    let mut run_dir = super::good();
    add(&mut run_dir);
    change(&mut run_dir);
    let found = run_dir.check().into_iter();
    let found: Vec<String> = found
        .filter(|it| it.promise == "P16")
        .map(|it| it.what)
        .collect();
    match words {
        None => assert!(found.is_empty(), "{found:#?}"),
        Some(words) => assert!(found.iter().any(|it| it.contains(words)), "{found:#?}"),
    }
}

#[test]
fn due_times_that_were_met_missed_and_run_by_the_user() {
    finds(None, |run_dir| {
        fire(run_dir, 2000, "p-1");
        fired(run_dir, (5000, 5400), "p-2");
        queued(run_dir, 5000, "p-2");
        let outcome = json!({"type": "skipped", "why": "overlap"});
        let body = json!({"schedule": SCHEDULE, "due": 6000, "outcome": outcome, "next": 7000});
        push(run_dir, "schedule_fired", 6000, body);
        // Without a due time and a key.
        let outcome = json!({"type": "fired", "prompt": "p-3"});
        push(
            run_dir,
            "schedule_fired",
            6100,
            json!({"schedule": SCHEDULE, "outcome": outcome}),
        );
        push(
            run_dir,
            "prompt_queued",
            6100,
            json!({"prompt": "p-3", "mode": "queue"}),
        );
    });
}

#[test]
fn a_due_time_that_is_handled_twice_or_out_of_order() {
    for due in [2000, 3000] {
        finds(Some("was handled after"), |run_dir| {
            fire(run_dir, 3000, "p-1");
            fire(run_dir, due, "p-2");
        });
    }
}

#[test]
fn a_due_time_that_is_none_or_not_yet_one() {
    finds(Some("is not one of its due times"), |run_dir| {
        fire(run_dir, 2500, "p-1");
    });
    finds(Some("before it was due"), |run_dir| {
        fired(run_dir, (2000, 1999), "p-1");
        queued(run_dir, 2000, "p-1");
    });
}

#[test]
fn a_schedule_that_fires_after_it_was_paused_or_removed() {
    for kind in ["schedule_paused", "schedule_removed"] {
        finds(Some("while it was paused"), |run_dir| {
            push(run_dir, kind, 1000, json!({"schedule": SCHEDULE}));
            fire(run_dir, 2000, "p-1");
        });
    }
    finds(None, |run_dir| {
        push(
            run_dir,
            "schedule_paused",
            1000,
            json!({"schedule": SCHEDULE}),
        );
        push(
            run_dir,
            "schedule_resumed",
            1000,
            json!({"schedule": SCHEDULE}),
        );
        fire(run_dir, 2000, "p-1");
    });
}

#[test]
fn a_prompt_that_is_not_in_the_commit_of_its_firing() {
    finds(Some("not in the commit"), |run_dir| {
        queued(run_dir, 2000, "p-1");
        fired(run_dir, (2000, 2000), "p-1");
    });
    finds(Some("without a firing"), |run_dir| {
        queued(run_dir, 2000, "p-0");
        fire(run_dir, 2000, "p-1");
    });
    finds(Some("another due time"), |run_dir| {
        fired(run_dir, (3000, 3000), "p-1");
        queued(run_dir, 2000, "p-1");
    });
}

/// Regression: each prompt of a schedule was reported as a prompt that no client sent.
#[test]
fn a_prompt_of_a_firing_needs_no_client_and_any_other_does() {
    let p11 = |run_dir: &RunDir| -> Vec<String> {
        let found = run_dir.check().into_iter();
        let found = found.filter(|it| it.promise == "P11");
        found.map(|it| it.what).collect()
    };
    let mut run_dir = super::good();
    add(&mut run_dir);
    fire(&mut run_dir, 2000, "p-fired");
    assert_eq!(p11(&run_dir), [""; 0]);
    queued(&mut run_dir, 3000, "p-alone");
    let found = p11(&run_dir);
    let is_told = found
        .iter()
        .any(|it| it.contains("p-alone was sent by no client"));
    assert!(is_told, "{found:#?}");
}
