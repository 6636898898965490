//! `limits.turn.wall_ms` ends a turn whatever it is doing, as `limited`.

use crate::hooks_stage::*;
use crate::house::{House, until};
use agentd_client::api::Status;
use agentd_core::event::{Kind, LimitKind};
use agentd_core::hook::HookEvent;
use serde_json::json;

fn limited(house: &House, wall_ms: u64) {
    let mut spec = house.spec();
    spec.limits.turn.wall_ms = Some(wall_ms);
    house.create_with("coder", spec);
}

fn ends_as_limited(house: &House, prompt: &str) {
    let answer = house.ask("coder", prompt);
    assert_eq!(answer.status, Status::Limited, "{prompt}: {answer:#?}");
    let events = house.events("coder");
    let mut ended = events.iter().rev().filter_map(|event| match &event.body {
        agentd_core::event::Body::TurnEnded(ended) => ended.limit,
        _ => None,
    });
    assert_eq!(ended.next(), Some(LimitKind::TurnTime));
}

#[test]
fn it_ends_a_reply_that_streams_a_server_that_hangs_and_a_command() {
    let house = House::new();
    limited(&house, 1_500);
    let slowly = format!("do: slowly 50 {}", "tick ".repeat(10_000));
    ends_as_limited(&house, &slowly);
    assert_eq!(house.count("coder", Kind::MessageAdded), 1, "what arrived");
    ends_as_limited(&house, "do: hang");
    ends_as_limited(
        &house,
        r#"do: call shell {"command": "echo x >> effects; exec sleep 1000"} ;; say never"#,
    );
    assert_eq!(house.effects().len(), 1);
    until("the end of the command", || {
        let mut processes = house.processes().into_iter();
        let any = processes.any(|(_, arguments)| arguments.contains("sleep 1000"));
        (!any).then_some(())
    });
    // The turn goes on where it was once there is time.
    let set = ["set", "coder", "limits.turn.wall_ms=60000"];
    assert!(house.cli(&set).status.success());
    assert!(house.cli(&["continue", "coder"]).status.success());
    until("the answer", || {
        let last = house.show("coder").last_turn?;
        (last.status == agentd_core::event::TurnStatus::Completed).then_some(())
    });
    house.verify();
}

#[test]
fn it_ends_a_turn_that_waits_for_a_hook_and_the_hook() {
    for event in ["PreToolUse", "PostToolUse", "Stop"] {
        let house = House::new();
        let waits = keep_and("exec sleep 1000");
        user(&house, &file(&[(event, waits)]));
        limited(&house, 3_000);
        ends_as_limited(&house, r#"do: call shell {"command": "true"} ;; say done"#);
        until_ended(&house, "coder", HookEvent::parse(event).unwrap());
        house.verify();
    }
}

/// It counts from the start of the turn as the journal has it.
#[test]
fn it_survives_a_kill_of_the_runtime_and_of_the_daemon() {
    let house = House::empty();
    house.daemon_has_keys();
    house.start_daemon();
    limited(&house, 5_000);
    let sent = house.send("coder", "do: hang");
    until("a request", || (house.requests().len() == 1).then_some(()));
    house.kill_runtime("coder");
    until("a request", || (house.requests().len() >= 2).then_some(()));
    house.kill_daemon();
    house.start_daemon();
    assert_eq!(house.answer("coder", sent.prompt).status, Status::Limited);
    let events = house.events("coder");
    let at = |kind: Kind| events.iter().find(|event| event.kind() == kind).unwrap().at;
    let took = at(Kind::TurnEnded).since(at(Kind::TurnStarted));
    assert!(took >= 5_000, "{took}");
    assert!(took < 60_000, "each process has not the whole time: {took}");
}

/// A turn that ended without an answer is told as such, whatever the hook says to it.
#[test]
fn a_limited_turn_is_told_to_stop_failure_hooks() {
    let house = House::new();
    user(
        &house,
        &file(&[
            ("Stop", keep_and("true")),
            ("StopFailure", keep_and("echo no >&2; exit 2")),
            ("Notification", keep_and("true")),
        ]),
    );
    let mut spec = house.spec();
    spec.limits.max_iterations = 1;
    house.create_with("coder", spec);
    let answer = house.ask(
        "coder",
        r#"do: call shell {"command": "true"} ;; say never"#,
    );
    assert_eq!(answer.status, Status::Limited);
    let told = until_heard(&house, "StopFailure");
    assert_eq!(told["status"], "limited", "{told}");
    let error = told["error"].as_str().unwrap();
    assert!(error.contains("iterations"), "{error}");
    let told = until_heard(&house, "Notification");
    assert_eq!(told["notification_type"], "turn_limited", "{told}");
    assert_eq!(heard_of(&house, "Stop").len(), 0);
    assert_eq!(house.requests().len(), 1, "it does not go on");
    house.completed("coder", "do: say fine");
    until_heard(&house, "Stop");
    until("the notification", || {
        let heard = heard_of(&house, "Notification");
        let kinds: Vec<_> = heard.iter().map(|it| &it["notification_type"]).collect();
        (kinds == [&json!("turn_limited"), &json!("turn_completed")]).then_some(())
    });
    assert_eq!(heard_of(&house, "StopFailure").len(), 1);
}

/// How long a reset waits for SessionEnd hooks is a setting.
#[test]
fn the_wait_for_session_end_hooks_is_a_setting() {
    let house = House::empty();
    let config = "[daemon]\nsession_end_wait_ms = 60000\n";
    std::fs::write(house.home().join("config.toml"), config).unwrap();
    // Longer than the default.
    user(
        &house,
        &file(&[("SessionEnd", keep_and("sleep 3; echo x >> effects"))]),
    );
    house.start_daemon();
    house.create("coder");
    reset(&house, "coder", &Default::default()).unwrap();
    assert!(house.work().join("effects").exists(), "it was waited for");
}
