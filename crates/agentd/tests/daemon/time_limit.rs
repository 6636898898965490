//! `limits.turn.wall_ms` ends a turn whatever it is doing, as `limited`.

use crate::hooks_fixture::*;
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::Status;
use agentd_core::event::{Kind, LimitKind};
use agentd_core::hook::HookEvent;
use serde_json::json;

fn limited(daemon: &TestDaemon, wall_ms: u64) {
    let mut spec = daemon.spec();
    spec.limits.turn.wall_ms = Some(wall_ms);
    daemon.create_with("coder", spec);
}

fn ends_as_limited(daemon: &TestDaemon, prompt: &str) {
    let answer = daemon.ask("coder", prompt);
    assert_eq!(answer.status, Status::Limited, "{prompt}: {answer:#?}");
    let events = daemon.events("coder");
    let mut ended = events.iter().rev().filter_map(|event| match &event.body {
        agentd_core::event::Body::TurnEnded(ended) => ended.limit,
        _ => None,
    });
    assert_eq!(ended.next(), Some(LimitKind::TurnTime));
}

#[test]
fn it_ends_a_reply_that_streams_a_server_that_hangs_and_a_command() {
    let daemon = TestDaemon::new();
    limited(&daemon, 1_500);
    let slowly = format!("do: slowly 50 {}", "tick ".repeat(10_000));
    ends_as_limited(&daemon, &slowly);
    assert_eq!(daemon.count("coder", Kind::MessageAdded), 1, "what arrived");
    ends_as_limited(&daemon, "do: hang");
    ends_as_limited(
        &daemon,
        r#"do: call shell {"command": "echo x >> effects; exec sleep 1000"} ;; say never"#,
    );
    assert_eq!(daemon.effects().len(), 1);
    until("the end of the command", || {
        let mut processes = daemon.processes().into_iter();
        let any = processes.any(|(_, arguments)| arguments.contains("sleep 1000"));
        (!any).then_some(())
    });
    // The turn goes on where it was once there is time.
    let set = ["set", "coder", "limits.turn.wall_ms=60000"];
    assert!(daemon.cli(&set).status.success());
    assert!(daemon.cli(&["continue", "coder"]).status.success());
    until("the answer", || {
        let last = daemon.show("coder").last_turn?;
        (last.status == agentd_core::event::TurnStatus::Completed).then_some(())
    });
    daemon.verify();
}

#[test]
fn it_ends_a_turn_that_waits_for_a_hook_and_the_hook() {
    for event in ["PreToolUse", "PostToolUse", "Stop"] {
        let daemon = TestDaemon::new();
        let waits = keep_and("exec sleep 1000");
        user(&daemon, &file(&[(event, waits)]));
        limited(&daemon, 3_000);
        ends_as_limited(&daemon, r#"do: call shell {"command": "true"} ;; say done"#);
        until_ended(&daemon, "coder", HookEvent::parse(event).unwrap());
        daemon.verify();
    }
}

/// The time counts from the start of the turn in the journal.
#[test]
fn it_survives_a_kill_of_the_runtime_and_of_the_daemon() {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    daemon.start_daemon();
    limited(&daemon, 5_000);
    let sent = daemon.send("coder", "do: hang");
    until("a request", || (daemon.requests().len() == 1).then_some(()));
    daemon.kill_runtime("coder");
    until("a request", || (daemon.requests().len() >= 2).then_some(()));
    daemon.kill_daemon();
    daemon.start_daemon();
    assert_eq!(daemon.answer("coder", sent.prompt).status, Status::Limited);
    let events = daemon.events("coder");
    let at = |kind: Kind| events.iter().find(|event| event.kind() == kind).unwrap().at;
    let took = at(Kind::TurnEnded).since(at(Kind::TurnStarted));
    assert!(took >= 5_000, "{took}");
    assert!(took < 60_000, "each process has not the whole time: {took}");
}

/// StopFailure hooks are invoked for a turn that ended without an answer, and their output cannot change that.
#[test]
fn a_limited_turn_is_told_to_stop_failure_hooks() {
    let daemon = TestDaemon::new();
    user(
        &daemon,
        &file(&[
            ("Stop", keep_and("true")),
            ("StopFailure", keep_and("echo no >&2; exit 2")),
            ("Notification", keep_and("true")),
        ]),
    );
    let mut spec = daemon.spec();
    spec.limits.max_iterations = 1;
    daemon.create_with("coder", spec);
    let answer = daemon.ask(
        "coder",
        r#"do: call shell {"command": "true"} ;; say never"#,
    );
    assert_eq!(answer.status, Status::Limited);
    let told = until_heard(&daemon, "StopFailure");
    assert_eq!(told["status"], "limited", "{told}");
    let error = told["error"].as_str().unwrap();
    assert!(error.contains("iterations"), "{error}");
    let told = until_heard(&daemon, "Notification");
    assert_eq!(told["notification_type"], "turn_limited", "{told}");
    assert_eq!(heard_of(&daemon, "Stop").len(), 0);
    assert_eq!(daemon.requests().len(), 1, "it does not go on");
    daemon.completed("coder", "do: say fine");
    until_heard(&daemon, "Stop");
    until("the notification", || {
        let heard = heard_of(&daemon, "Notification");
        let kinds: Vec<_> = heard.iter().map(|it| &it["notification_type"]).collect();
        (kinds == [&json!("turn_limited"), &json!("turn_completed")]).then_some(())
    });
    assert_eq!(heard_of(&daemon, "StopFailure").len(), 1);
}

/// A setting determines how long a reset waits for SessionEnd hooks.
#[test]
fn the_wait_for_session_end_hooks_is_a_setting() {
    let daemon = TestDaemon::empty();
    let config = "[daemon]\nsession_end_wait_ms = 60000\n";
    std::fs::write(daemon.home().join("config.toml"), config).unwrap();
    // Longer than the default.
    user(
        &daemon,
        &file(&[("SessionEnd", keep_and("sleep 3; echo x >> effects"))]),
    );
    daemon.start_daemon();
    daemon.create("coder");
    reset(&daemon, "coder", &Default::default()).unwrap();
    assert!(daemon.work().join("effects").exists(), "it was waited for");
}
