//! A copy of a home: it is read-only until it is adopted, and running work in the original continues.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::Status;
use agentd_client::{Client, api};
use agentd_core::event::{Body, Event, Kind};
use agentd_core::message::CallOutcome;
use agentd_core::state::Phase;
use std::path::{Path, PathBuf};
use std::process::Command;

fn copy(daemon: &TestDaemon) -> PathBuf {
    let copy = daemon.root().join("copy");
    let mut copying = Command::new("cp");
    copying.arg("-a").args([daemon.home(), copy.clone()]);
    assert!(copying.status().unwrap().success());
    copy
}

fn events(daemon: &TestDaemon, home: &Path) -> Vec<Event> {
    let query = api::EventQuery {
        all: true,
        ..api::EventQuery::default()
    };
    let client = Client::new(home.join("run/api.sock"));
    daemon.block(client.page("coder", &query)).unwrap().0
}

fn stdout(output: &std::process::Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Regression: the daemon of the copy took the original's shim for dead, killed its command, and ran the turn again.
#[test]
fn a_copied_home_is_only_read_until_it_is_adopted_and_its_original_goes_on() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let command =
        "echo ran >> effects; until [ -e go ]; do sleep 0.05; done; echo ended >> effects";
    let call = serde_json::json!({ "command": command });
    let sent = daemon.send("coder", &format!("do: call shell {call} ;; say done"));
    until("the command", || {
        (daemon.effects() == ["ran"]).then_some(())
    });
    let copy = copy(&daemon);
    let cli = |args: &[&str]| daemon.cli_at(&copy, args);

    // It can be looked at, and says what it is.
    let shown = cli(&["show", "coder", "--json"]);
    assert_eq!(shown.status.code(), Some(0), "{shown:?}");
    let status = stdout(&cli(&["daemon", "status", "--json"]));
    assert!(status["read_only"].is_string(), "{status:#}");
    let before = events(&daemon, &copy).len();
    for args in [
        &["send", "coder", "do: say more"][..],
        &["interrupt", "coder"],
        &["create", "x"],
    ] {
        let refused = cli(args);
        assert_eq!(refused.status.code(), Some(3), "{refused:?}");
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(text.contains("agentd adopt-copy"), "{text}");
    }
    assert_eq!(cli(&["tasks", "--json"]).status.code(), Some(0));
    assert_eq!(events(&daemon, &copy).len(), before);
    assert_eq!(
        stdout(&cli(&["show", "coder", "--json"]))["process"]["pid"],
        serde_json::Value::Null
    );
    assert_eq!(daemon.effects(), ["ran"]);

    // After its adoption the copy works independently: there, the outcome of the command is unknown.
    let adopted = cli(&["adopt-copy", "--json"]);
    assert_eq!(adopted.status.code(), Some(0), "{adopted:?}");
    assert_ne!(stdout(&adopted)["home_id"], status["home_id"]);
    assert_eq!(stdout(&adopted)["copied_from"], status["home_id"]);
    let more = cli(&["send", "coder", "do: say more"]);
    assert_eq!(more.status.code(), Some(0), "{more:?}");
    let outcomes: Vec<CallOutcome> = events(&daemon, &copy)
        .into_iter()
        .filter_map(|event| match event.body {
            Body::ToolEnded(result) => Some(result.outcome),
            _ => None,
        })
        .collect();
    assert_eq!(outcomes, [CallOutcome::Unknown]);
    assert_eq!(
        daemon.effects(),
        ["ran"],
        "the command ran again, or was ended"
    );

    // The original has noticed nothing.
    std::fs::write(daemon.work().join("go"), "").unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (Status::Completed, "done")
    );
    assert_eq!(daemon.effects(), ["ran", "ended"]);
    assert_eq!(daemon.count("coder", Kind::IncarnationBegan), 1);
    cli(&["daemon", "stop"]);
}

/// A call that was recorded but had not begun when the copy was made may run in the original. In the copy its outcome is
/// unknown, not *not started*.
#[test]
fn a_call_that_had_not_begun_is_unknown_in_an_adopted_copy() {
    let daemon = TestDaemon::empty();
    daemon.hold(agentd_failpoint::plan::Role::Shim, "before-claim.shim");
    daemon.start_daemon();
    daemon.create("coder");
    let call = serde_json::json!({ "command": "echo ran >> effects" });
    daemon.send("coder", &format!("do: call shell {call} ;; say done"));
    daemon.until_held();
    let copy = copy(&daemon);
    let cli = |args: &[&str]| daemon.cli_at(&copy, args);
    assert_eq!(cli(&["adopt-copy"]).status.code(), Some(0));
    let more = cli(&["send", "coder", "do: say more"]);
    assert_eq!(more.status.code(), Some(0), "{more:?}");
    let events = events(&daemon, &copy);
    let mut results = events.iter().filter_map(|event| match &event.body {
        Body::ToolEnded(result) => Some(result.outcome),
        _ => None,
    });
    assert_eq!(results.next(), Some(CallOutcome::Unknown));
    cli(&["daemon", "stop"]);
}

#[test]
fn a_home_that_is_no_copy_is_not_adopted() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let refused = daemon.cli(&["adopt-copy"]);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    assert_eq!(daemon.completed("coder", "do: say hello").text, "hello");
    // A directory that is moved is the same one.
    daemon.cli(&["daemon", "stop"]);
    daemon.until_daemon_ends();
    let moved = daemon.root().join("moved");
    std::fs::rename(daemon.home(), &moved).unwrap();
    let shown = daemon.cli_at(&moved, &["send", "coder", "do: say again"]);
    assert_eq!(shown.status.code(), Some(0), "{shown:?}");
    let shown = stdout(&daemon.cli_at(&moved, &["show", "coder", "--json"]));
    assert_eq!(shown["phase"], Phase::Idle.name());
    daemon.cli_at(&moved, &["daemon", "stop"]);
}
