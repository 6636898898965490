//! The daemon or the parent's process is killed before and after each write and each message in a subagent's life: there
//! is one subagent, and its end is reported once.

use crate::subagents::{check_told_once, go, parent_spec, start, until_go};
use crate::test_daemon::{TestDaemon, until};
use agentd_core::event::{Kind, SubagentOutcome};
use agentd_failpoint::Passed;
use agentd_failpoint::plan::{Action, Role, Rule};

const RULE: &str = "rule";

const DAEMON: [&str; 10] = [
    "before-commit.subagent_started",
    "after-commit.subagent_started",
    "before-commit.subagent_of",
    "after-commit.subagent_of",
    "before-commit.subagent_ended",
    "after-commit.subagent_ended",
    "before-commit.parent_told",
    "after-commit.parent_told",
    "on-receive.ask",
    "before-send.answer",
];

const RUNTIME: [&str; 8] = [
    "before-tool_started",
    "after-tool_started",
    "before-send.ask",
    "after-send.ask",
    "on-receive.answer",
    "before-tool_ended",
    "after-tool_ended",
    "after-result",
];

fn daemon(role: Role, point: &str) -> TestDaemon {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    let rule = Rule {
        action: Action::Kill,
        ..Rule::hold(RULE, role, point)
    };
    daemon.follow(rule);
    daemon.start_daemon();
    daemon.create_with("coder", parent_spec(&daemon));
    daemon
}

fn killed_at(role: Role, point: &str, background: bool) {
    let daemon = daemon(role, point);
    // The subagent's command does not wait: only the kill interrupts it.
    go(&daemon);
    let prompt = match role {
        Role::Runtime => "do: say found".to_owned(),
        _ => until_go(),
    };
    let call = start(&prompt, background);
    let sent = daemon.send("coder", &format!("do: {call} ;; say done"));
    until(point, || Passed::of_rule(&daemon.root(), RULE).unwrap());
    if role == Role::Daemon {
        daemon.kill_daemon();
        daemon.start_daemon();
    }
    let answer = daemon.answer("coder", sent.prompt);
    // A call that had not begun when its process died never does: the model is told, and decides.
    if point == "before-tool_started" {
        assert_eq!(daemon.count("coder", Kind::SubagentStarted), 0);
        return;
    }
    until("its end", || {
        let ended = daemon.show("coder").children.first()?.outcome;
        (ended == Some(SubagentOutcome::Completed)).then_some(())
    });
    if background {
        until("the next turn", || {
            (daemon.count("coder", Kind::TurnEnded) == 2).then_some(())
        });
    }
    check_told_once(&daemon, &answer);
}

#[test]
fn the_daemon_at_each_step_of_one_that_is_waited_for() {
    for point in DAEMON {
        println!("{point}");
        killed_at(Role::Daemon, point, false);
    }
}

#[test]
fn the_daemon_at_each_step_of_one_in_the_background() {
    for point in DAEMON {
        println!("{point}");
        killed_at(Role::Daemon, point, true);
    }
}

#[test]
fn a_process_at_each_step() {
    for background in [false, true] {
        for point in RUNTIME {
            println!("{point}, background {background}");
            killed_at(Role::Runtime, point, background);
        }
    }
}
