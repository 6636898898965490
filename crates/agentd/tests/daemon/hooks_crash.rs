//! The daemon dies while a hook is told: what became of it is found out, and never guessed.

use crate::hooks_stage::*;
use crate::house::{House, kill, until};
use agentd_client::api::Status;
use agentd_core::event::HookOutcome;
use agentd_core::hook::HookEvent;
use agentd_core::state::Phase;
use agentd_process::failpoint::plan::Role;
use rustix::process::Signal;
use serde_json::json;

const SLOW: &str = "echo asked >> effects; until test -e go; do sleep 0.02; done";

fn call(command: &str) -> String {
    let call = json!({"command": command});
    format!("do: call shell {call} ;; say done")
}

/// The agent's process sees nothing of this, and dies.
fn behind_its_back(house: &House, happens: impl FnOnce()) {
    let pid = until("a process", || house.pid("coder"));
    kill(pid, Signal::STOP);
    happens();
    kill(pid, Signal::KILL);
}

/// Waits until the only task of the agent has left its result.
fn until_result(house: &House) {
    let agent = house.show("coder").id.to_string();
    let tasks = house.home().join("agents").join(agent).join("tasks");
    until("a result", || {
        let mut all = std::fs::read_dir(&tasks).ok()?.flatten();
        all.any(|task| task.path().join("exit").exists())
            .then_some(())
    });
}

#[test]
fn one_that_ran_on_has_run_and_its_answer_counts() {
    let house = House::new();
    let deny = format!("{SLOW}; echo 'not that' >&2; exit 2");
    user(&house, &file(&[("PreToolUse", command(&deny))]));
    house.create("coder");
    let sent = house.send("coder", &call("echo ran >> effects"));
    until("the hook", || (house.effects().len() == 1).then_some(()));
    house.kill_daemon();
    std::fs::write(house.work().join("go"), "").unwrap();
    house.start_daemon();
    assert_eq!(house.answer("coder", sent.prompt).status, Status::Completed);
    assert_eq!(house.effects(), ["asked"], "asked once, and it said no");
    let ended = until_ended(&house, "coder", HookEvent::PreToolUse);
    assert_eq!((ended.outcome, ended.exit), (HookOutcome::Ran, Some(2)));
    assert!(last_request(&house).to_string().contains("not that"));
    house.verify();
}

/// HOOKS.md: a PreToolUse hook whose outcome is unknown means *ask*.
#[test]
fn one_that_was_killed_with_the_daemon_is_unknown_and_the_user_is_asked() {
    let house = House::new();
    user(&house, &file(&[("PreToolUse", command(SLOW))]));
    house.create("coder");
    house.send("coder", &call("echo ran >> effects"));
    until("the hook", || (house.effects().len() == 1).then_some(()));
    house.kill_daemon();
    let folder = house.home().join("hooks").display().to_string();
    for (pid, arguments) in house.processes() {
        if arguments.contains(&folder) {
            kill(pid, Signal::KILL);
        }
    }
    house.start_daemon();
    let ended = until_ended(&house, "coder", HookEvent::PreToolUse);
    assert_eq!(ended.outcome, HookOutcome::Unknown);
    until("a question", || {
        (house.show("coder").phase == Phase::AwaitingApproval).then_some(())
    });
    assert_eq!(house.effects(), ["asked"]);
}

#[test]
fn one_that_had_not_begun_never_does() {
    let house = House::empty();
    user(
        &house,
        &file(&[("PreToolUse", command("echo asked >> effects"))]),
    );
    house.hold(Role::Daemon, "after-hook_started");
    house.start_daemon();
    house.create("coder");
    house.send("coder", &call("echo ran >> effects"));
    house.until_held();
    house.kill_daemon();
    house.start_daemon();
    let ended = until_ended(&house, "coder", HookEvent::PreToolUse);
    assert_eq!(ended.outcome, HookOutcome::NotRun);
    until("a question", || {
        (house.show("coder").phase == Phase::AwaitingApproval).then_some(())
    });
    assert_eq!(house.effects().len(), 0);
}

/// An agent that was about to begin does not before its hooks have spoken, whichever daemon it is by then.
#[test]
fn what_opens_a_conversation_opens_it_under_another_daemon_too() {
    let house = House::new();
    let slow = format!("{SLOW}; echo the code word is swordfish");
    user(&house, &file(&[("SessionStart", command(&slow))]));
    house.create("coder");
    let sent = house.send("coder", "do: say hello");
    until("the hook", || (house.effects().len() == 1).then_some(()));
    house.kill_daemon();
    house.start_daemon();
    assert!(house.requests().is_empty(), "it waits");
    std::fs::write(house.work().join("go"), "").unwrap();
    // Whoever made it has gone, and its key with the daemon.
    let env = house.caller();
    let start = agentd_client::api::Start::with(env);
    house.block(house.client().start("coder", &start)).unwrap();
    assert_eq!(house.answer("coder", sent.prompt).status, Status::Completed);
    assert_eq!(house.effects(), ["asked"]);
    let first = last_request(&house)["messages"][0].to_string();
    assert!(first.contains("swordfish"), "{first}");
}

/// Found by the lab: what was said when an agent began was lost with a daemon that died right before, or
/// right after, it had written it down.
#[test]
fn what_was_said_opens_the_conversation_once_though_the_daemon_dies_just_then() {
    for point in ["after-hook_ended", "after-commit.notice"] {
        let house = House::empty();
        let says = "echo asked >> effects; echo the code word is swordfish";
        user(&house, &file(&[("SessionStart", command(says))]));
        house.hold(Role::Daemon, point);
        house.daemon_has_keys();
        house.start_daemon();
        house.create_and_kill_when_held("coder");
        house.start_daemon();
        house.completed("coder", "do: say hello");
        assert_eq!(house.effects(), ["asked"]);
        let first = last_request(&house).to_string();
        assert_eq!(first.matches("swordfish").count(), 1, "{point}: {first}");
        let left = std::fs::read_dir(house.home().join("hooks")).unwrap();
        assert_eq!(left.count(), 0, "{point}: folders are left");
        house.verify();
    }
}

/// Nobody waits for it, and nobody runs the agent: it is found all the same.
#[test]
fn one_of_an_agent_at_rest_is_found_by_what_is_on_disk() {
    let house = House::new();
    let mut spec = house.spec();
    spec.idle_ms = 20;
    user(&house, &file(&[("SessionEnd", command(SLOW))]));
    house.create_with("coder", spec);
    reset(&house, "coder", &Default::default()).unwrap();
    house.kill_daemon();
    house.start_daemon();
    std::fs::write(house.work().join("go"), "").unwrap();
    let folder = house.home().join("hooks");
    until("its end", || {
        (std::fs::read_dir(&folder).unwrap().count() == 0).then_some(())
    });
    let ended = until_ended(&house, "coder", HookEvent::SessionEnd);
    assert_eq!(ended.outcome, HookOutcome::Ran);
    assert_eq!(house.effects(), ["asked"]);
}

/// Whoever called the service is gone, and the answer with it.
#[test]
fn a_service_that_was_being_asked_is_unknown() {
    let house = House::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    // It takes the call, and never says a word.
    let (tell, called) = std::sync::mpsc::channel();
    let served = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        tell.send(stream).unwrap();
    });
    user(
        &house,
        &file(&[("PreToolUse", json!({"type": "http", "url": url}))]),
    );
    house.create("coder");
    house.send("coder", &call("echo ran >> effects"));
    let _stream = called.recv().unwrap();
    served.join().unwrap();
    house.kill_daemon();
    house.start_daemon();
    let ended = until_ended(&house, "coder", HookEvent::PreToolUse);
    assert_eq!(ended.outcome, HookOutcome::Unknown);
    until("a question", || {
        (house.show("coder").phase == Phase::AwaitingApproval).then_some(())
    });
    assert_eq!(house.effects().len(), 0);
}

/// A call that ended while no process was there to see it is told, once, before its result is on record.
#[test]
fn a_result_that_recovery_found_is_told() {
    let house = House::new();
    let more = json!({"hookSpecificOutput": {
        "hookEventName": "PostToolUse", "additionalContext": "the linter is happy"}});
    user(&house, &file(&[("PostToolUse", says(&more))]));
    let slow = "echo on >> effects; until test -e go; do sleep 0.02; done; echo 42";
    house.create("coder");
    let sent = house.send("coder", &call(slow));
    until("the tool", || (house.effects().len() == 1).then_some(()));
    behind_its_back(&house, || {
        std::fs::write(house.work().join("go"), "").unwrap();
        until_result(&house);
    });
    assert_eq!(house.answer("coder", sent.prompt).status, Status::Completed);
    let [told] = &heard_of(&house, "PostToolUse")[..] else {
        panic!("{:?}", heard(&house));
    };
    assert!(told["tool_response"].as_str().unwrap().contains("42"));
    let request = last_request(&house).to_string();
    assert!(request.contains("the linter is happy"), "{request}");
    assert_eq!(house.effects(), ["on"]);
    house.verify();
}

/// One of which nobody knows what became is told as one that failed.
#[test]
fn a_call_whose_outcome_is_unknown_is_told() {
    let house = House::new();
    user(
        &house,
        &file(&[
            ("PostToolUse", keep_and("true")),
            ("PostToolUseFailure", keep_and("true")),
        ]),
    );
    house.create("coder");
    let sent = house.send("coder", &call("echo on >> effects; sleep 1004"));
    until("the tool", || (house.effects().len() == 1).then_some(()));
    behind_its_back(&house, || {
        let tasks = house.home().join("agents").display().to_string();
        for (pid, arguments) in house.processes() {
            if arguments.contains(&tasks) && arguments.contains("/tasks/") {
                kill(pid, Signal::KILL);
            }
        }
    });
    assert_eq!(house.answer("coder", sent.prompt).status, Status::Completed);
    let told = until_heard(&house, "PostToolUseFailure");
    assert!(
        told["error"].as_str().unwrap().contains("Outcome unknown"),
        "{told}"
    );
    assert_eq!(told["is_interrupt"], false);
    assert_eq!(heard_of(&house, "PostToolUse").len(), 0);
}
