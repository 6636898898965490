//! Backups, and what they restore, compared with the journal and with what clients knew.

use super::good::SECOND;
use super::run_dir::{AGENT, RunDir};
use super::{breaks, is_fine};
use serde_json::{Value, json};

const FILE: &str = "/backups/1.backup";
const LATEST: &str = "/latest/latest.backup";

fn attempt(at: u64, to: &str, file: Option<&str>, digest: &str) -> Value {
    json!({"at": at, "until": at + 10, "to": to, "heads": {}, "file": file,
           "digest": file.map(|_| digest), "exit": 0})
}

fn stopped(seq: usize) -> Value {
    json!({"seq": seq, "at": 9, "v": 1, "kind": "agent_stopped", "body": {}, "conversation": "c-1"})
}

/// A backup at time 100 that has this many events, and a home that was restored from it at time 200.
fn backed_up(run_dir: &mut RunDir, events: usize) {
    run_dir.backups = vec![attempt(100, "/backups", Some(FILE), "d1")];
    run_dir.restored = vec![
        json!({"at": 200, "number": 1, "file": FILE, "is_restored": true,
                                   "is_clean": true, "text": ""}),
    ];
    let mut copy = run_dir.events[..events].to_vec();
    copy.push(stopped(events + 1));
    run_dir.copies.insert((1, AGENT.to_owned()), copy);
}

/// The same with all events.
fn all_backed_up(run_dir: &mut RunDir) {
    let events = run_dir.events.len();
    backed_up(run_dir, events);
}

fn copy(run_dir: &mut RunDir) -> &mut Vec<Value> {
    run_dir.copies.get_mut(&(1, AGENT.to_owned())).unwrap()
}

/// The reader saw the events after this one when the backup had begun.
fn seen_later(run_dir: &mut RunDir, after: u64) {
    for line in run_dir.clients.values_mut().flatten() {
        if line["seq"].as_u64().is_some_and(|seq| seq > after) {
            line["at"] = json!(150);
        }
    }
}

/// The violations of this promise alone: other promises are about content that is purged here.
fn found(change: impl FnOnce(&mut RunDir)) -> Vec<String> {
    let mut run_dir = super::good();
    change(&mut run_dir);
    let found = run_dir.check().into_iter();
    let own = found.filter(|it| it.promise == "P18");
    own.map(|it| it.what).collect()
}

#[test]
fn a_backup_with_all_that_was_acknowledged_is_fine() {
    is_fine(all_backed_up);
    // What was seen only when it had begun need not be in it.
    is_fine(|run_dir| {
        backed_up(run_dir, 12);
        seen_later(run_dir, 12);
    });
    // An acknowledged reset that the copy does not carry out.
    is_fine(|run_dir| {
        all_backed_up(run_dir);
        let copy = copy(run_dir);
        let mut withdrawn = copy.last().cloned().unwrap();
        withdrawn["kind"] = json!("reset_withdrawn");
        let at = copy.len() - 1;
        copy.insert(at, withdrawn);
        copy[at + 1]["seq"] = json!(at + 2);
    });
}

#[test]
fn acknowledged_events_that_are_missing_are_found() {
    let words = "was acknowledged before it began";
    // A reader saw it.
    breaks("P18", words, |run_dir| {
        let events = run_dir.events.len();
        backed_up(run_dir, events - 1);
    });
    breaks("P18", words, |run_dir| {
        backed_up(run_dir, 11);
        seen_later(run_dir, 12);
    });
    // The API had shown it.
    breaks("P18", words, |run_dir| {
        backed_up(run_dir, 12);
        seen_later(run_dir, 12);
        run_dir.backups[0]["heads"] = json!({"coder": 13});
    });
    // The sender of a prompt was told of it.
    breaks("P18", words, |run_dir| {
        backed_up(run_dir, 12);
        seen_later(run_dir, 12);
        let sent = json!({"agent": {"id": AGENT, "name": "coder"}, "prompt": "p-9", "seq": 13});
        let client = vec![
            json!({"client": "cli", "args": ["send", "coder"], "agent": "coder"}),
            json!({"at": 90, "saw": "line", "text": sent.to_string()}),
        ];
        run_dir.clients.insert("9".to_owned(), client);
    });
    // The whole agent is missing.
    breaks("P18", words, |run_dir| {
        all_backed_up(run_dir);
        run_dir.copies.clear();
    });
}

#[test]
fn a_copy_that_differs_from_the_original_is_found() {
    breaks("P18", "is not the original's", |run_dir| {
        all_backed_up(run_dir);
        copy(run_dir)[5]["body"] = json!({"other": true});
    });
    breaks("P18", "is not the original's", |run_dir| {
        all_backed_up(run_dir);
        copy(run_dir).last_mut().unwrap()["kind"] = json!("turn_started");
    });
    breaks("P18", "should be", |run_dir| {
        all_backed_up(run_dir);
        copy(run_dir).remove(5);
    });
    // A string that is stored separately.
    breaks("P18", "in the copy from", |run_dir| {
        all_backed_up(run_dir);
        copy(run_dir).last_mut().unwrap()["apart"] = json!(r#"[["/text","ab01"]]"#);
    });
}

#[test]
fn a_backup_that_cannot_be_restored_is_found() {
    breaks("P18", "could not be restored: damaged", |run_dir| {
        all_backed_up(run_dir);
        run_dir.restored[0]["is_restored"] = json!(false);
        run_dir.restored[0]["text"] = json!("damaged\n");
    });
    breaks("P18", "restored is damaged", |run_dir| {
        all_backed_up(run_dir);
        run_dir.restored[0]["is_clean"] = json!(false);
    });
    breaks("P18", "never acknowledged", |run_dir| {
        all_backed_up(run_dir);
        run_dir.backups.clear();
    });
    breaks("P18", "no backup was restored", |run_dir| {
        run_dir.run["scenario"] = json!("backup");
    });
}

fn checked(at: u64, file: &str, digest: &str) -> Value {
    json!({"at": at, "file": file, "is_whole": true, "digest": digest, "text": ""})
}

/// A file at time 20 that another backup is to replace at time 50; the client of that one has no answer.
fn replaced(run_dir: &mut RunDir, digest: &str) {
    run_dir.backups = vec![
        attempt(20, LATEST, Some(LATEST), "d1"),
        attempt(50, LATEST, None, ""),
    ];
    run_dir.backup_checks = vec![checked(70, LATEST, digest)];
}

#[test]
fn an_earlier_backup_that_is_as_it_was_is_fine() {
    is_fine(|run_dir| replaced(run_dir, "d1"));
    // It was replaced, and only the answer is missing.
    is_fine(|run_dir| replaced(run_dir, "d2"));
    is_fine(|run_dir| {
        run_dir.backups = vec![
            attempt(20, "/backups", Some(FILE), "d1"),
            attempt(50, "/backups", None, ""),
        ];
        run_dir.backup_checks = vec![checked(70, FILE, "d1")];
    });
}

#[test]
fn an_earlier_backup_that_was_destroyed_is_found() {
    breaks("P18", "cannot be used any more: cut off", |run_dir| {
        replaced(run_dir, "d1");
        run_dir.backup_checks[0]["is_whole"] = json!(false);
        run_dir.backup_checks[0]["text"] = json!("cut off");
    });
    // In a directory, no attempt replaces another backup.
    breaks(
        "P18",
        "is not the backup that was acknowledged",
        |run_dir| {
            run_dir.backups = vec![
                attempt(20, "/backups", Some(FILE), "d1"),
                attempt(50, "/backups", None, ""),
            ];
            run_dir.backup_checks = vec![checked(70, FILE, "d2")];
        },
    );
    // The attempt came later than the check.
    breaks(
        "P18",
        "is not the backup that was acknowledged",
        |run_dir| {
            replaced(run_dir, "d2");
            run_dir.backup_checks[0]["at"] = json!(40);
        },
    );
}

/// A purge of the second conversation that was acknowledged at this time.
fn purged(run_dir: &mut RunDir, until: u64) {
    run_dir.orders.push(
        json!({"at": until - 5, "until": until, "agent": "coder", "verb": "purge", "op": "o-9",
               "acknowledged": true, "answer": {"conversations": [SECOND]}, "from_tool": false}),
    );
}

/// Deletes the content of the second conversation.
fn without_content(events: &mut [Value]) {
    let of_second = |event: &&mut Value| event["conversation"] == SECOND;
    let mut deleted = 0;
    for event in events.iter_mut().filter(of_second) {
        if event["kind"] == "notice" {
            event["body"] = Value::Null;
            deleted += 1;
        }
    }
    assert!(deleted > 0, "the conversation has no content");
}

#[test]
fn what_was_purged_before_the_restore_is_not_in_the_copy() {
    let both = found(|run_dir| {
        without_content(&mut run_dir.events);
        all_backed_up(run_dir);
        purged(run_dir, 150);
    });
    assert!(both.is_empty(), "{both:#?}");
    breaks("P18", "which was purged", |run_dir| {
        all_backed_up(run_dir);
        purged(run_dir, 150);
    });
    // The restore had begun before.
    let later = found(|run_dir| {
        all_backed_up(run_dir);
        purged(run_dir, 250);
    });
    assert!(later.is_empty(), "{later:#?}");
    // Nothing else is deleted.
    breaks("P18", "is not the original's", |run_dir| {
        all_backed_up(run_dir);
        without_content(copy(run_dir));
    });
}
