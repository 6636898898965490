//! The hooks of a reset: in order, each once, before any new prompt. PreReset may refuse; SessionEnd may continue
//! afterwards.

use crate::hooks_fixture::*;
use crate::test_daemon::{TestDaemon, until};
use agentd_client::Kind as ProblemKind;
use agentd_client::api::{Reset, Status};
use agentd_core::event::{Body, Direction, HookOutcome, Kind};
use agentd_core::hook::HookEvent;
use agentd_core::state::Phase;
use serde_json::json;

fn fresh() -> Reset {
    Reset::default()
}

/// claude-code#70606, #28692, codex#25657: SessionStart did not run at a clear, or ran at the next prompt.
/// claude-code#25009, #45627: there was no hook before a clear, while the history is there.
#[test]
fn each_is_told_once_in_order_and_what_it_says_opens_the_new_conversation() {
    let daemon = TestDaemon::new();
    let copy = r#"path=$(printf '%s' "$input" | sed 's/.*"transcript_path":"\([^"]*\)".*/\1/'); cp "$path" "$AGENTD_PROJECT_DIR/copy""#;
    user(
        &daemon,
        &file(&[
            ("PreReset", keep_and(copy)),
            ("SessionEnd", keep_and("true")),
            ("SessionStart", keep_and("echo the code word is swordfish")),
        ]),
    );
    daemon.create("coder");
    daemon.completed("coder", "do: say the magic word is xyzzy");
    let before = heard(&daemon).len();
    let ask = Reset {
        reason: Some("a new feature".to_owned()),
        ..fresh()
    };
    let receipt = reset(&daemon, "coder", &ask).unwrap();
    let told = heard(&daemon).split_off(before);
    let names: Vec<_> = told
        .iter()
        .map(|it| it["hook_event_name"].clone())
        .collect();
    assert_eq!(names, ["PreReset", "SessionEnd", "SessionStart"]);
    let (old, new) = (json!(receipt.old), json!(receipt.new));
    assert_eq!(told[0]["session_id"], old);
    assert_eq!(told[0]["reason"], "a new feature");
    assert_eq!(told[0]["source"], "clear");
    assert_eq!(told[0]["op"], json!(receipt.op));
    assert_eq!(told[1]["session_id"], old);
    assert_eq!(told[1]["reason"], "clear");
    assert_eq!(told[1]["next_session_id"], new);
    assert_eq!(told[2]["session_id"], new);
    assert_eq!(told[2]["source"], "clear");
    assert_eq!(told[2]["parent_session_id"], old);
    assert_eq!(told[2]["background_tasks"], json!([]));
    for input in &told {
        assert_eq!(input["agentd"]["agent"], "coder");
        assert_eq!(input["agentd"]["op"], json!(receipt.op));
        assert_eq!(input["cwd"], daemon.work().display().to_string());
    }
    // What the first one read of the transcript was all of it.
    let copy = std::fs::read_to_string(daemon.work().join("copy")).unwrap();
    assert!(
        copy.contains("xyzzy") && copy.contains("turn_ended"),
        "{copy}"
    );
    let hooks: Vec<_> = receipt
        .hooks
        .iter()
        .map(|it| (it.event, it.outcome))
        .collect();
    let ran = Some(HookOutcome::Ran);
    assert_eq!(
        hooks,
        [
            (HookEvent::PreReset, ran),
            (HookEvent::SessionEnd, ran),
            (HookEvent::SessionStart, ran)
        ]
    );
    daemon.completed("coder", "do: say next");
    let request = last_request(&daemon);
    let first = request["messages"][0].to_string();
    assert!(first.contains("swordfish"), "{request}");
    assert!(!request.to_string().contains("xyzzy"), "{request}");
    // The next process gets the recorded output; the hook does not run again.
    let count = heard(&daemon).len();
    daemon.kill_runtime("coder");
    daemon.completed("coder", "do: say again");
    assert!(
        last_request(&daemon)["messages"][0]
            .to_string()
            .contains("swordfish")
    );
    assert_eq!(heard(&daemon).len(), count);
    all_ran(&daemon, "coder");
    daemon.verify();
}

/// claude-code#66892: nothing could keep a clear from happening.
#[test]
fn one_that_refuses_leaves_everything_as_it_was() {
    let daemon = TestDaemon::new();
    let gate = "test -e ok || { echo 'not on a Friday' >&2; exit 2; }";
    user(&daemon, &file(&[("PreReset", command(gate))]));
    daemon.create("coder");
    let sent = daemon.send("coder", &format!("do: slowly 20 {}", "word ".repeat(100)));
    daemon.until_kind("coder", Kind::RequestSent);
    let problem = reset(&daemon, "coder", &fresh()).unwrap_err();
    assert_eq!(problem.kind, ProblemKind::Refused);
    assert!(
        problem
            .detail
            .clone()
            .unwrap_or_default()
            .contains("not on a Friday"),
        "{problem}"
    );
    // The turn under way has not even been stopped.
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    assert_eq!(daemon.show("coder").conversation.unwrap().ordinal, 1);
    let skip = Reset {
        skip_hooks: true,
        ..fresh()
    };
    reset(&daemon, "coder", &skip).unwrap();
    std::fs::write(daemon.work().join("ok"), "").unwrap();
    reset(&daemon, "coder", &fresh()).unwrap();
    assert_eq!(daemon.show("coder").conversation.unwrap().ordinal, 3);
}

/// claude-code#41577: SessionEnd was killed in mid-work.
#[test]
fn one_that_hangs_holds_nobody_up_and_still_ends_its_work() {
    let daemon = TestDaemon::new();
    let hang = "until test -e go; do sleep 0.02; done; echo ended >> effects";
    user(&daemon, &file(&[("SessionEnd", command(hang))]));
    daemon.create("coder");
    daemon.completed("coder", "do: say old");
    let receipt = reset(&daemon, "coder", &fresh()).unwrap();
    assert_eq!(receipt.hooks.len(), 1);
    assert_eq!(receipt.hooks[0].outcome, None, "it runs on");
    daemon.completed("coder", "do: say new");
    std::fs::write(daemon.work().join("go"), "").unwrap();
    let ended = until_ended(&daemon, "coder", HookEvent::SessionEnd);
    assert_eq!((ended.outcome, ended.exit), (HookOutcome::Ran, Some(0)));
    assert_eq!(daemon.effects(), ["ended"]);
    // It belongs to the conversation that ended.
    let ended = daemon.until_kind("coder", Kind::HookEnded);
    assert_eq!(ended.conversation, receipt.old);
}

#[test]
fn what_runs_out_of_time_is_ended_with_all_that_it_started() {
    let daemon = TestDaemon::new();
    let forks = "sleep 1000 & sleep 1000 & echo on >> effects; wait";
    let hang = json!({"type": "command", "command": forks, "timeout": 0.3});
    let closed =
        json!({"type": "command", "command": "sleep 1001", "timeout": 0.3, "onFailure": "block"});
    user(&daemon, &file(&[("PreReset", hang)]));
    daemon.create("coder");
    reset(&daemon, "coder", &fresh()).unwrap();
    let ended = until_ended(&daemon, "coder", HookEvent::PreReset);
    assert!(ended.timed_out);
    let left = |command: &str| {
        let mut all = daemon.processes().into_iter();
        all.find(|(_, arguments)| arguments.contains(command))
    };
    until("their end", || left("sleep 1000").is_none().then_some(()));
    // Where it says so, that is a no.
    user(&daemon, &file(&[("PreReset", closed)]));
    let problem = reset(&daemon, "coder", &fresh()).unwrap_err();
    assert!(
        problem
            .detail
            .clone()
            .unwrap_or_default()
            .contains("timed out"),
        "{problem}"
    );
}

#[test]
fn what_a_hook_left_running_is_ended_with_it() {
    let daemon = TestDaemon::new();
    let forks = "setsid sleep 1002 & sleep 1002 & exit 0";
    user(&daemon, &file(&[("SessionEnd", command(forks))]));
    daemon.create("coder");
    reset(&daemon, "coder", &fresh()).unwrap();
    until_ended(&daemon, "coder", HookEvent::SessionEnd);
    let mut all = daemon.processes().into_iter();
    assert_eq!(
        all.find(|(_, arguments)| arguments.contains("sleep 1002")),
        None
    );
}

/// The agent waits for the hook, so the hook must not wait for the agent.
#[test]
fn a_hook_that_resets_its_own_agent_gets_a_conflict() {
    let daemon = TestDaemon::new();
    let program = crate::test_daemon::AGENTD;
    let line = format!(
        "(sh -c '{program} reset coder') > said 2>&1; echo $? > code; {program} reset other > other 2>&1; echo $? > other-code"
    );
    user(
        &daemon,
        &file(&[(
            "PreReset",
            json!({"type": "command", "command": line, "timeout": 60}),
        )]),
    );
    let mut spec = daemon.spec();
    spec.hooks = json!({});
    daemon.create_with("coder", spec);
    let skip = Reset {
        skip_hooks: true,
        ..fresh()
    };
    daemon.create("other");
    reset(&daemon, "other", &skip).unwrap();
    user(&daemon, &file(&[]));
    let mut spec = daemon.spec();
    spec.hooks =
        json!({"PreReset": [{"hooks": [{"type": "command", "command": line, "timeout": 60}]}]});
    daemon
        .block(daemon.client().set_spec("coder", &spec))
        .unwrap();
    reset(&daemon, "coder", &fresh()).unwrap();
    let read = |name: &str| std::fs::read_to_string(daemon.work().join(name)).unwrap();
    assert_eq!(read("code").trim(), "3", "{}", read("said"));
    assert!(
        read("said").contains("a hook of `coder` may not change `coder`"),
        "{}",
        read("said")
    );
    assert_eq!(read("other-code").trim(), "0", "{}", read("other"));
    assert_eq!(daemon.show("coder").generation, 2);
}

#[test]
fn undo_and_redo_tell_no_conversation_that_it_begins() {
    let daemon = TestDaemon::new();
    user(
        &daemon,
        &file(&[
            ("PreReset", keep_and("true")),
            ("SessionEnd", keep_and("true")),
            ("SessionStart", keep_and("echo hello")),
        ]),
    );
    daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    reset(&daemon, "coder", &fresh()).unwrap();
    let before = heard(&daemon).len();
    let undo = Reset {
        step: Some(Direction::Undo),
        ..fresh()
    };
    reset(&daemon, "coder", &undo).unwrap();
    let told = heard(&daemon).split_off(before);
    let told: Vec<_> = told
        .iter()
        .map(|it| {
            (
                it["hook_event_name"].clone(),
                it["source"].clone(),
                it["reason"].clone(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (json!("PreReset"), json!("undo"), json!(null)),
            (json!("SessionEnd"), json!(null), json!("undo"))
        ]
    );
}

/// The daemon dies while each of the three hooks runs: the reset completes, and no hook runs twice.
#[test]
fn a_daemon_that_dies_in_a_hook_of_a_reset_finishes_it() {
    for event in ["PreReset", "SessionEnd", "SessionStart"] {
        let daemon = TestDaemon::new();
        let slow =
            format!("echo {event} >> effects; until test -e go; do sleep 0.02; done; echo context");
        user(&daemon, &file(&[(event, command("true"))]));
        daemon.create("coder");
        daemon.completed("coder", "do: say one");
        user(&daemon, &file(&[(event, command(&slow))]));
        let client = daemon.client();
        let asked = daemon.spawn(async move { client.reset("coder", &fresh()).await });
        until("the hook", || (daemon.effects().len() == 1).then_some(()));
        daemon.kill_daemon();
        let _whatever = daemon.block(asked);
        daemon.start_daemon();
        std::fs::write(daemon.work().join("go"), "").unwrap();
        daemon.until_kind("coder", Kind::ResetEnded);
        all_ran(&daemon, "coder");
        assert_eq!(daemon.effects(), [event], "it ran once");
        assert_eq!(daemon.show("coder").phase, Phase::Idle);
        let opens = daemon
            .events("coder")
            .into_iter()
            .any(|it| matches!(&it.body, Body::Notice(notice) if notice.text.contains("context")));
        assert_eq!(opens, event == "SessionStart");
        daemon.verify();
    }
}
