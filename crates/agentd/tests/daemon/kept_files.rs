//! What files were before tools changed them is in the journal, within its limit; what commands changed is found after
//! their turn.

use crate::files_fixture::{commit, scans};
use crate::sandbox::tool;
use crate::test_daemon::{TestDaemon, kill, until};
use agentd_client::api::Status;
use agentd_core::event::{
    Body, Event, FileBefore, FileKept, KeptContent, Kind, Scan, ScanProblem, ScannedChange,
};
use rustix::process::Signal;
use serde_json::json;
use std::fs;

fn kept(events: &[Event]) -> Vec<&FileKept> {
    let kept = events.iter().filter_map(|event| match &event.body {
        Body::FileKept(kept) => Some(kept),
        _ => None,
    });
    kept.collect()
}

fn text_of(kept: &FileKept) -> Option<&str> {
    match &kept.before {
        FileBefore::File {
            content: KeptContent::Text { text },
            ..
        } => Some(text),
        _ => None,
    }
}

#[test]
fn what_a_call_replaces_is_kept_right_before_its_start() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let write = json!({"file_path": "a.txt", "content": "one\n"});
    tool(&daemon, "write_file", &write);
    let edit = json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"});
    tool(&daemon, "edit_file", &edit);
    let events = daemon.events("coder");
    let found = kept(&events);
    let path = fs::canonicalize(daemon.work().join("a.txt")).unwrap();
    assert!(found.iter().all(|it| it.path == path.to_str().unwrap()));
    assert_eq!(found[0].before, FileBefore::Absent);
    assert_eq!(text_of(found[1]), Some("one\n"));
    assert_eq!(found.len(), 2);
    for pair in events.windows(2) {
        if pair[0].kind() == Kind::FileKept {
            assert_eq!(pair[1].kind(), Kind::ToolStarted);
        }
    }
    // Neither of them is of interest to the model.
    let requests = daemon.requests();
    assert!(
        !requests
            .last()
            .unwrap()
            .body
            .to_string()
            .contains("file_kept")
    );
}

#[test]
fn past_the_limit_the_oldest_contents_go_and_the_edit_proceeds() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.limits.file_history_bytes = Some(100);
    daemon.create_with("coder", spec);
    let line = |n: usize| format!("{n:>39}\n");
    for n in 0..6 {
        let write = json!({"file_path": "a.txt", "content": line(n)});
        let said = tool(&daemon, "write_file", &write);
        assert!(said.starts_with("Wrote"), "{said}");
    }
    let events = daemon.events("coder");
    let left: Vec<&str> = kept(&events).into_iter().filter_map(text_of).collect();
    assert!(left.len() <= 2, "{left:?}");
    assert_eq!(left.last(), Some(&line(4).as_str()));
    let purged = events.iter().filter_map(|event| match &event.body {
        Body::Purged(purged) => purged.files,
        _ => None,
    });
    let purged: Vec<_> = purged.collect();
    assert!(!purged.is_empty());
    let through = purged.last().unwrap().through;
    let gone = |event: &&Event| matches!(event.body, Body::Gone(Kind::FileKept));
    assert!(events.iter().filter(gone).all(|event| event.seq <= through));
    daemon.verify();
    // The next daemon reads the same, and goes on with it.
    daemon.kill_daemon();
    daemon.start_daemon();
    let write = json!({"file_path": "a.txt", "content": line(9)});
    let said = tool(&daemon, "write_file", &write);
    assert!(said.starts_with("Wrote"), "{said}");
    let events = daemon.events("coder");
    let left: Vec<&str> = kept(&events).into_iter().filter_map(text_of).collect();
    assert_eq!(left.last(), Some(&line(5).as_str()));
    daemon.verify();
}

/// The kinds of the events that this prompt leads to.
fn kinds_of_turn(daemon: &TestDaemon, agent: &str, prompt: &str) -> Vec<Kind> {
    let before = daemon.events(agent).len();
    daemon.completed(agent, prompt);
    let events = daemon.events(agent).split_off(before);
    events.iter().map(Event::kind).collect()
}

#[test]
fn a_turn_without_edits_and_commands_has_no_more_events_than_without_a_file_history() {
    let daemon = TestDaemon::new();
    fs::write(daemon.work().join("notes.txt"), "one\n").unwrap();
    commit(&daemon, &[]);
    daemon.create("coder");
    let edit = json!({"file_path": "notes.txt", "old_string": "one", "new_string": "two"});
    tool(&daemon, "edit_file", &edit);
    tool(
        &daemon,
        "shell",
        &json!({"command": "echo three >> notes.txt"}),
    );
    until("the scan", || scans(&daemon).pop());
    daemon.create("reader");
    // The events of the first turn of an agent differ.
    daemon.completed("reader", "do: say ready");
    let read = r#"do: call read_file {"file_path":"notes.txt"} ;; say read"#;
    for prompt in ["do: say hello", read] {
        let without = kinds_of_turn(&daemon, "reader", prompt);
        assert!(without.contains(&Kind::TurnEnded), "{without:?}");
        assert_eq!(kinds_of_turn(&daemon, "coder", prompt), without, "{prompt}");
    }
    assert_eq!(scans(&daemon).len(), 1);
}

#[test]
fn commands_are_scanned_after_their_turn_in_a_repository() {
    let daemon = TestDaemon::new();
    fs::write(daemon.work().join("a.txt"), "one\n").unwrap();
    commit(&daemon, &[]);
    daemon.create("coder");
    // A busy machine may take longer than a scan waits.
    let files = until("a scan in time", || {
        let before = scans(&daemon).len();
        let change = json!({"command": "echo more >> a.txt; echo new > b.txt"});
        daemon.completed("coder", &format!("do: call shell {change} ;; say done"));
        let found = until("the scan", || scans(&daemon).get(before).cloned());
        match found {
            Scan::Known { files, more: 0 } => Some(files),
            Scan::Unknown {
                why: ScanProblem::Timeout,
            } => None,
            other => panic!("{other:?}\n{}", daemon.log()),
        }
    });
    let changes: Vec<_> = files.iter().map(|file| file.change).collect();
    assert_eq!(changes, [ScannedChange::Modified, ScannedChange::Added]);
    assert!(files[0].path.ends_with("/a.txt") && files[1].path.ends_with("/b.txt"));
    assert!(files[0].head.is_some() && files[0].after.is_some());
}

#[test]
fn without_a_repository_the_journal_says_that_changes_are_not_known() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say nothing ran");
    let command = json!({"command": "true"});
    daemon.completed("coder", &format!("do: call shell {command} ;; say done"));
    daemon.completed("coder", "do: say nothing ran again");
    let why = ScanProblem::NoGit;
    assert_eq!(scans(&daemon), [Scan::Unknown { why }]);
}

#[test]
fn killed_around_the_scan_it_is_recorded_once_before_the_next_turn() {
    for place in ["before-scan", "before-files_scanned", "after-files_scanned"] {
        let daemon = TestDaemon::empty();
        daemon.daemon_has_keys();
        daemon.hold_runtime(place);
        daemon.start_daemon();
        daemon.create("coder");
        let command = json!({"command": "echo once >> effects"});
        daemon.send("coder", &format!("do: call shell {command} ;; say done"));
        daemon.until_held();
        let pid = until("a process", || daemon.pid("coder"));
        kill(pid, Signal::KILL);
        let answer = daemon.ask("coder", "do: say the next");
        assert_eq!(answer.status, Status::Completed, "{place}: {answer:#?}");
        assert_eq!(scans(&daemon).len(), 1, "{place}");
        let kinds: Vec<Kind> = daemon.events("coder").iter().map(Event::kind).collect();
        let scanned = kinds.iter().position(|kind| *kind == Kind::FilesScanned);
        let started = kinds.iter().rposition(|kind| *kind == Kind::TurnStarted);
        assert!(scanned < started, "{place}: {kinds:?}");
        assert_eq!(daemon.effects(), ["once"], "{place}");
        daemon.verify();
    }
}

#[test]
fn killed_around_an_edit_it_is_kept_and_made_or_not_made() {
    for place in [
        "before-file_kept",
        "after-file_kept",
        "after-tool_started",
        "before-write.file",
        "before-rename.file",
        "after-rename.file",
    ] {
        let daemon = TestDaemon::empty();
        daemon.daemon_has_keys();
        daemon.hold_runtime(place);
        daemon.start_daemon();
        daemon.create("coder");
        let write = json!({"file_path": "a.txt", "content": "whole\n"});
        let sent = daemon.send("coder", &format!("do: call write_file {write} ;; say done"));
        daemon.until_held();
        let pid = until("a process", || daemon.pid("coder"));
        kill(pid, Signal::KILL);
        let answer = daemon.answer("coder", sent.prompt);
        assert_eq!(answer.status, Status::Completed, "{place}: {answer:#?}");
        let events = daemon.events("coder");
        let starts = events
            .iter()
            .filter(|event| event.kind() == Kind::ToolStarted);
        assert_eq!(kept(&events).len(), starts.count(), "{place}");
        let text = fs::read_to_string(daemon.work().join("a.txt")).ok();
        assert!(text.is_none_or(|text| text == "whole\n"), "{place}");
        daemon.verify();
    }
}
