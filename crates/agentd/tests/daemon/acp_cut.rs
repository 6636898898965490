//! The session of an ACP agent after a turn that was cut off, and after a purge, with a scripted agent.

use crate::acp_fixture;
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::Status;
use serde_json::Value;
use std::fs;

const CHILD: &str = include_str!("../fixture/acp-fragile.sh");

fn create(daemon: &TestDaemon) {
    let spec = acp_fixture::spec(daemon, "acp-fragile.sh", CHILD);
    daemon.create_with("coder", spec);
}

/// An agent whose second turn was interrupted.
fn interrupted() -> TestDaemon {
    let daemon = TestDaemon::new();
    create(&daemon);
    daemon.completed("coder", "remember plugh");
    let sent = daemon.send("coder", "do: wait");
    until("the prompt in the program", || {
        (!daemon.effects().is_empty()).then_some(())
    });
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted, "{answer:#?}");
    daemon
}

fn lines(daemon: &TestDaemon, file: &str) -> Vec<String> {
    let text = fs::read_to_string(daemon.work().join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_session_that_fails_after_an_interrupt_is_replaced_by_a_new_one() {
    let daemon = interrupted();
    // The prompt is not sent again by itself.
    let answer = daemon.ask("coder", "one");
    assert_eq!(answer.status, Status::Failed, "{answer:#?}");
    let why = answer.error.unwrap();
    assert!(why.contains("a call has no result"), "{why}");
    assert!(why.contains("begins a new session"), "{why}");
    assert_eq!(lines(&daemon, "sessions"), ["new"]);
    assert_eq!(daemon.completed("coder", "two").text, "fine");
    assert_eq!(lines(&daemon, "sessions"), ["new", "new"]);
    let prompts = lines(&daemon, "prompts");
    assert_eq!(prompts.len(), 4, "{prompts:#?}");
    assert!(prompts[3].contains("remember plugh"), "{prompts:#?}");
    // The new session is used from now on.
    assert_eq!(daemon.completed("coder", "three").text, "fine");
    assert_eq!(lines(&daemon, "sessions"), ["new", "new"]);
    assert!(!lines(&daemon, "prompts")[4].contains("remember plugh"));
    daemon.verify();
}

/// The user may come back when the process has ended.
#[test]
fn a_session_that_was_given_up_is_not_loaded_by_the_next_process() {
    let daemon = interrupted();
    let why = daemon.ask("coder", "one").error.unwrap();
    assert!(why.contains("begins a new session"), "{why}");
    daemon.kill_runtime("coder");
    assert_eq!(daemon.completed("coder", "two").text, "fine");
    assert_eq!(lines(&daemon, "sessions"), ["new", "new"]);
    let prompts = lines(&daemon, "prompts");
    assert!(prompts[3].contains("remember plugh"), "{prompts:#?}");
    // The new session is loaded from now on.
    daemon.kill_runtime("coder");
    assert_eq!(daemon.completed("coder", "three").text, "fine");
    assert_eq!(lines(&daemon, "sessions"), ["new", "new", "load"]);
    daemon.verify();
}

#[test]
fn a_session_that_is_loaded_after_a_crash_is_told_which_calls_are_unknown() {
    let daemon = TestDaemon::new();
    create(&daemon);
    daemon.completed("coder", "remember plugh");
    let answer = daemon.ask("coder", "do: die");
    assert_eq!(answer.status, Status::Failed, "{answer:#?}");
    assert_eq!(daemon.completed("coder", "one").text, "fine");
    assert_eq!(daemon.completed("coder", "two").text, "fine");
    assert_eq!(lines(&daemon, "sessions"), ["new", "load"]);
    let prompts = lines(&daemon, "prompts");
    let [_, _, one, two] = &prompts[..] else {
        panic!("{prompts:#?}")
    };
    assert!(one.contains("effect is unknown"), "{one}");
    assert!(one.contains("execute `ls`"), "{one}");
    assert!(!one.contains("remember plugh"), "{one}");
    assert!(!two.contains("effect is unknown"), "{two}");
    daemon.verify();
}

#[test]
fn a_purge_names_the_session_that_the_program_may_keep() {
    let daemon = TestDaemon::new();
    create(&daemon);
    daemon.completed("coder", "remember plugh");
    assert!(daemon.cli(&["reset", "coder"]).status.success());
    let purge = ["purge", "coder", "--conversation", "1", "--yes", "--json"];
    let output = daemon.cli(&purge);
    let purged: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [left] = &purged["left"].as_array().unwrap()[..] else {
        panic!("{purged:#}")
    };
    assert_eq!(left["program"], "bash");
    assert_eq!(left["session"], "s");
    assert_eq!(left["places"], serde_json::json!(["~"]));
    assert_eq!(left["conversation"], purged["conversations"][0]);
    daemon.verify();
}
