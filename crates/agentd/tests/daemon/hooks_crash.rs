//! The daemon dies while a hook runs: the next daemon determines its outcome, and never guesses.

use crate::hooks_fixture::*;
use crate::test_daemon::{TestDaemon, kill, until};
use agentd_client::api::Status;
use agentd_core::event::HookOutcome;
use agentd_core::hook::HookEvent;
use agentd_core::state::Phase;
use agentd_failpoint::plan::Role;
use rustix::process::Signal;
use serde_json::json;

const SLOW: &str = "echo asked >> effects; until test -e go; do sleep 0.02; done";

fn call(command: &str) -> String {
    let call = json!({"command": command});
    format!("do: call shell {call} ;; say done")
}

/// Suspends the agent's process, runs `happens`, and kills the process, which therefore notices nothing of it.
fn behind_its_back(daemon: &TestDaemon, happens: impl FnOnce()) {
    let pid = until("a process", || daemon.pid("coder"));
    kill(pid, Signal::STOP);
    happens();
    kill(pid, Signal::KILL);
}

/// Waits until the agent's only task has written its exit file.
fn until_result(daemon: &TestDaemon) {
    let agent = daemon.show("coder").id.to_string();
    let tasks = daemon.home().join("agents").join(agent).join("tasks");
    until("a result", || {
        let mut all = std::fs::read_dir(&tasks).ok()?.flatten();
        all.any(|task| task.path().join("exit").exists())
            .then_some(())
    });
}

#[test]
fn one_that_ran_on_has_run_and_its_answer_counts() {
    let daemon = TestDaemon::new();
    let deny = format!("{SLOW}; echo 'not that' >&2; exit 2");
    user(&daemon, &file(&[("PreToolUse", command(&deny))]));
    daemon.create("coder");
    let sent = daemon.send("coder", &call("echo ran >> effects"));
    until("the hook", || (daemon.effects().len() == 1).then_some(()));
    daemon.kill_daemon();
    std::fs::write(daemon.work().join("go"), "").unwrap();
    daemon.start_daemon();
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    assert_eq!(daemon.effects(), ["asked"], "asked once, and it said no");
    let ended = until_ended(&daemon, "coder", HookEvent::PreToolUse);
    assert_eq!((ended.outcome, ended.exit), (HookOutcome::Ran, Some(2)));
    assert!(last_request(&daemon).to_string().contains("not that"));
    daemon.verify();
}

/// If the outcome of a PreToolUse hook is unknown, the call waits for the user's approval.
#[test]
fn one_that_was_killed_with_the_daemon_is_unknown_and_the_user_is_asked() {
    let daemon = TestDaemon::new();
    user(&daemon, &file(&[("PreToolUse", command(SLOW))]));
    daemon.create("coder");
    daemon.send("coder", &call("echo ran >> effects"));
    until("the hook", || (daemon.effects().len() == 1).then_some(()));
    daemon.kill_daemon();
    let dir = daemon.home().join("hooks").display().to_string();
    for (pid, arguments) in daemon.processes() {
        if arguments.contains(&dir) {
            kill(pid, Signal::KILL);
        }
    }
    daemon.start_daemon();
    let ended = until_ended(&daemon, "coder", HookEvent::PreToolUse);
    assert_eq!(ended.outcome, HookOutcome::Unknown);
    until("a question", || {
        (daemon.show("coder").phase == Phase::AwaitingApproval).then_some(())
    });
    assert_eq!(daemon.effects(), ["asked"]);
}

#[test]
fn one_that_had_not_begun_never_does() {
    let daemon = TestDaemon::empty();
    user(
        &daemon,
        &file(&[("PreToolUse", command("echo asked >> effects"))]),
    );
    daemon.hold(Role::Daemon, "after-hook_started");
    daemon.start_daemon();
    daemon.create("coder");
    daemon.send("coder", &call("echo ran >> effects"));
    daemon.until_held();
    daemon.kill_daemon();
    daemon.start_daemon();
    let ended = until_ended(&daemon, "coder", HookEvent::PreToolUse);
    assert_eq!(ended.outcome, HookOutcome::NotRun);
    until("a question", || {
        (daemon.show("coder").phase == Phase::AwaitingApproval).then_some(())
    });
    assert_eq!(daemon.effects().len(), 0);
}

/// A new agent does not begin before its SessionStart hooks have answered, also if another daemon runs by then.
#[test]
fn what_opens_a_conversation_opens_it_under_another_daemon_too() {
    let daemon = TestDaemon::new();
    let slow = format!("{SLOW}; echo the code word is swordfish");
    user(&daemon, &file(&[("SessionStart", command(&slow))]));
    daemon.create("coder");
    let sent = daemon.send("coder", "do: say hello");
    until("the hook", || (daemon.effects().len() == 1).then_some(()));
    daemon.kill_daemon();
    daemon.start_daemon();
    assert!(daemon.requests().is_empty(), "it waits");
    std::fs::write(daemon.work().join("go"), "").unwrap();
    // The client that created the agent is gone, and its key went with the daemon.
    let env = daemon.caller();
    let start = agentd_client::api::Start::with(env);
    daemon
        .block(daemon.client().start("coder", &start))
        .unwrap();
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    assert_eq!(daemon.effects(), ["asked"]);
    let first = last_request(&daemon)["messages"][0].to_string();
    assert!(first.contains("swordfish"), "{first}");
}

/// Found by the lab: the output of SessionStart hooks was lost if the daemon died directly before or directly after it
/// had recorded it.
#[test]
fn what_was_said_opens_the_conversation_once_though_the_daemon_dies_just_then() {
    for point in ["after-hook_ended", "after-commit.notice"] {
        let daemon = TestDaemon::empty();
        let says = "echo asked >> effects; echo the code word is swordfish";
        user(&daemon, &file(&[("SessionStart", command(says))]));
        daemon.hold(Role::Daemon, point);
        daemon.daemon_has_keys();
        daemon.start_daemon();
        daemon.create_and_kill_when_held("coder");
        daemon.start_daemon();
        daemon.completed("coder", "do: say hello");
        assert_eq!(daemon.effects(), ["asked"]);
        let first = last_request(&daemon).to_string();
        assert_eq!(first.matches("swordfish").count(), 1, "{point}: {first}");
        let left = std::fs::read_dir(daemon.home().join("hooks")).unwrap();
        assert_eq!(left.count(), 0, "{point}: directories are left");
        daemon.verify();
    }
}

/// No process waits for the hook, and the agent has no process: the next daemon finds the hook nevertheless.
#[test]
fn one_of_an_agent_at_rest_is_found_by_what_is_on_disk() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.idle_ms = 20;
    user(&daemon, &file(&[("SessionEnd", command(SLOW))]));
    daemon.create_with("coder", spec);
    reset(&daemon, "coder", &Default::default()).unwrap();
    daemon.kill_daemon();
    daemon.start_daemon();
    std::fs::write(daemon.work().join("go"), "").unwrap();
    let dir = daemon.home().join("hooks");
    until("its end", || {
        (std::fs::read_dir(&dir).unwrap().count() == 0).then_some(())
    });
    let ended = until_ended(&daemon, "coder", HookEvent::SessionEnd);
    assert_eq!(ended.outcome, HookOutcome::Ran);
    assert_eq!(daemon.effects(), ["asked"]);
}

/// The daemon that called the service is gone, and so is the answer.
#[test]
fn a_service_that_was_being_asked_is_unknown() {
    let daemon = TestDaemon::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    // It takes the call, and never says a word.
    let (tell, called) = std::sync::mpsc::channel();
    let served = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        tell.send(stream).unwrap();
    });
    user(
        &daemon,
        &file(&[("PreToolUse", json!({"type": "http", "url": url}))]),
    );
    daemon.create("coder");
    daemon.send("coder", &call("echo ran >> effects"));
    let _stream = called.recv().unwrap();
    served.join().unwrap();
    daemon.kill_daemon();
    daemon.start_daemon();
    let ended = until_ended(&daemon, "coder", HookEvent::PreToolUse);
    assert_eq!(ended.outcome, HookOutcome::Unknown);
    until("a question", || {
        (daemon.show("coder").phase == Phase::AwaitingApproval).then_some(())
    });
    assert_eq!(daemon.effects().len(), 0);
}

/// A call ends while the agent has no process: its hooks are invoked once, before its result is recorded.
#[test]
fn a_result_that_recovery_found_is_told() {
    let daemon = TestDaemon::new();
    let more = json!({"hookSpecificOutput": {
        "hookEventName": "PostToolUse", "additionalContext": "the linter is happy"}});
    user(&daemon, &file(&[("PostToolUse", says(&more))]));
    let slow = "echo on >> effects; until test -e go; do sleep 0.02; done; echo 42";
    daemon.create("coder");
    let sent = daemon.send("coder", &call(slow));
    until("the tool", || (daemon.effects().len() == 1).then_some(()));
    behind_its_back(&daemon, || {
        std::fs::write(daemon.work().join("go"), "").unwrap();
        until_result(&daemon);
    });
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    let [told] = &heard_of(&daemon, "PostToolUse")[..] else {
        panic!("{:?}", heard(&daemon));
    };
    assert!(told["tool_response"].as_str().unwrap().contains("42"));
    let request = last_request(&daemon).to_string();
    assert!(request.contains("the linter is happy"), "{request}");
    assert_eq!(daemon.effects(), ["on"]);
    daemon.verify();
}

/// A call with an unknown outcome is reported to PostToolUseFailure hooks.
#[test]
fn a_call_whose_outcome_is_unknown_is_told() {
    let daemon = TestDaemon::new();
    user(
        &daemon,
        &file(&[
            ("PostToolUse", keep_and("true")),
            ("PostToolUseFailure", keep_and("true")),
        ]),
    );
    daemon.create("coder");
    let sent = daemon.send("coder", &call("echo on >> effects; sleep 1004"));
    until("the tool", || (daemon.effects().len() == 1).then_some(()));
    behind_its_back(&daemon, || {
        let tasks = daemon.home().join("agents").display().to_string();
        for (pid, arguments) in daemon.processes() {
            if arguments.contains(&tasks) && arguments.contains("/tasks/") {
                kill(pid, Signal::KILL);
            }
        }
    });
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    let told = until_heard(&daemon, "PostToolUseFailure");
    assert!(
        told["error"].as_str().unwrap().contains("Outcome unknown"),
        "{told}"
    );
    assert_eq!(told["is_interrupt"], false);
    assert_eq!(heard_of(&daemon, "PostToolUse").len(), 0);
}
