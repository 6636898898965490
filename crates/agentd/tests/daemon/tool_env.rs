//! `agentd` inside a command of an agent: it finds the same home and the same agent, and starts no daemon.

use crate::test_daemon::{AGENTD, TestDaemon};
use agentd_core::event::{Body, Kind};
use std::collections::BTreeMap;
use std::fs;

fn run(daemon: &TestDaemon, command: &str) {
    let call = serde_json::json!({ "command": command });
    daemon.completed("coder", &format!("do: call shell {call} ;; say done"));
}

/// Regression: without these variables `agentd` in a tool used the default home, and started a daemon there.
#[test]
fn a_command_knows_its_home_agent_conversation_turn_and_call() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    // The spec cannot replace the variables that identify the agent.
    spec.env
        .insert("AGENTD_HOME".to_owned(), "/nowhere".to_owned());
    daemon.create_with("coder", spec);
    run(
        &daemon,
        &format!("env > env; '{AGENTD}' show \"$AGENTD_AGENT\" --json > shown"),
    );
    let text = fs::read_to_string(daemon.work().join("env")).unwrap();
    let own = text.lines().filter(|line| line.starts_with("AGENTD_"));
    let env: BTreeMap<&str, &str> = own.filter_map(|line| line.split_once('=')).collect();
    let events = daemon.events("coder");
    let started = events
        .iter()
        .find(|event| event.kind() == Kind::ToolStarted);
    let started = started.unwrap();
    let Body::ToolStarted(call) = &started.body else {
        panic!("{started:?}")
    };
    let expected = [
        ("AGENTD_AGENT", "coder".to_owned()),
        ("AGENTD_CALL_ID", call.call.to_string()),
        ("AGENTD_CONVERSATION", started.conversation.to_string()),
        ("AGENTD_HOME", daemon.home().display().to_string()),
        ("AGENTD_TURN", started.turn.unwrap().to_string()),
    ];
    let expected: BTreeMap<&str, &str> = expected
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    assert_eq!(env, expected);
    let shown = fs::read(daemon.work().join("shown")).unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap();
    assert_eq!(shown["name"], "coder");
    assert_eq!(shown["phase"], "running");
}

#[test]
fn a_command_starts_no_daemon_in_any_other_home_either() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let other = daemon.root().join("other");
    let agentd = format!("AGENTD_HOME='{}' '{AGENTD}' list", other.display());
    // Nor where it has forgotten whose it is.
    run(
        &daemon,
        &format!(
            "{agentd}; echo $? >> codes; unset AGENTD_CALL_ID AGENTD_TURN; {agentd}; echo $? >> codes"
        ),
    );
    let codes = fs::read_to_string(daemon.work().join("codes")).unwrap();
    assert_eq!(codes, "4\n4\n");
    assert!(!other.exists());
}
