//! File tools do not overwrite a content that the model has not seen. What it has seen is in the journal: it survives the
//! death of a runtime, a reset clears it, and an undo brings it back.

use crate::sandbox::tool;
use crate::test_daemon::TestDaemon;
use agentd_client::api::Reset;
use agentd_core::event::Direction;
use serde_json::{Value, json};
use std::fs;

const CHANGED: &str = "a.txt has changed since you last read or wrote it";
const UNREAD: &str = "a.txt exists, and you have not read it in this conversation";

/// With an agent `coder`, and a file in its working directory.
fn daemon() -> TestDaemon {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    fs::write(daemon.work().join("a.txt"), "one\ntwo\n").unwrap();
    daemon
}

fn text(daemon: &TestDaemon) -> String {
    fs::read_to_string(daemon.work().join("a.txt")).unwrap()
}

fn read(daemon: &TestDaemon) {
    let said = tool(daemon, "read_file", &json!({"file_path": "a.txt"}));
    assert_eq!(said.trim_end(), text(daemon).trim_end());
}

fn edit(old: &str, new: &str) -> Value {
    json!({"file_path": "a.txt", "old_string": old, "new_string": new})
}

#[test]
fn what_was_read_is_known_after_the_runtime_was_killed() {
    let daemon = daemon();
    read(&daemon);
    daemon.kill_runtime("coder");
    let said = tool(&daemon, "edit_file", &edit("one", "1"));
    assert!(said.starts_with("Edited a.txt"), "{said}");
    daemon.kill_runtime("coder");
    let write = json!({"file_path": "a.txt", "content": "all new\n"});
    let said = tool(&daemon, "write_file", &write);
    assert!(said.starts_with("Wrote"), "{said}");
    fs::write(daemon.work().join("a.txt"), "by the user\n").unwrap();
    daemon.kill_runtime("coder");
    let said = tool(&daemon, "edit_file", &edit("user", "model"));
    assert!(said.contains(CHANGED), "{said}");
    assert!(said.contains("\n-all new\n+by the user\n"), "{said}");
    assert_eq!(text(&daemon), "by the user\n");
    read(&daemon);
    let said = tool(&daemon, "edit_file", &edit("user", "model"));
    assert!(said.starts_with("Edited a.txt"), "{said}");
}

#[test]
fn what_changed_is_shown_after_the_runtime_was_killed() {
    let daemon = daemon();
    read(&daemon);
    tool(&daemon, "edit_file", &edit("one", "1"));
    tool(&daemon, "edit_file", &edit("two", "2"));
    fs::write(daemon.work().join("a.txt"), "1\nzwei\n").unwrap();
    daemon.kill_runtime("coder");
    let said = tool(&daemon, "edit_file", &edit("zwei", "3"));
    assert!(said.contains(CHANGED), "{said}");
    assert!(said.contains("\n 1\n-2\n+zwei\n"), "{said}");
}

#[test]
fn a_change_by_a_command_must_be_read_too_and_is_shown() {
    let daemon = daemon();
    read(&daemon);
    tool(&daemon, "shell", &json!({"command": "echo three >> a.txt"}));
    let said = tool(&daemon, "edit_file", &edit("one", "1"));
    assert!(said.contains(CHANGED), "{said}");
    assert!(said.contains("\n two\n+three\n"), "{said}");
    assert_eq!(text(&daemon), "one\ntwo\nthree\n");
}

#[test]
fn a_reset_forgets_what_was_read_and_an_undo_brings_it_back() {
    let daemon = daemon();
    read(&daemon);
    let reset = |reset: Reset| {
        daemon
            .block(daemon.client().reset("coder", &reset))
            .unwrap();
    };
    reset(Reset::default());
    let said = tool(&daemon, "edit_file", &edit("one", "1"));
    assert!(said.contains(UNREAD), "{said}");
    assert_eq!(text(&daemon), "one\ntwo\n");
    reset(Reset {
        step: Some(Direction::Undo),
        ..Reset::default()
    });
    let said = tool(&daemon, "edit_file", &edit("one", "1"));
    assert!(said.starts_with("Edited a.txt"), "{said}");
}
