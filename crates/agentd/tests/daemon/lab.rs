//! Defects that the lab found, one test each. Also: the lab's switches work only in the lab.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Create, Start, Status};
use agentd_core::event::{Body, Kind, TaskExit};
use agentd_core::spec::{AgentSpec, Decision, Rule as Permission};
use agentd_core::state::Phase;
use agentd_failpoint::plan::{Action, Plan, Role, Rule};
use agentd_failpoint::{Passed, VARIABLE};

/// The next daemon sends itself this signal at the failpoint, once.
fn plan(daemon: &TestDaemon, point: &str, nth: u32, action: Action) {
    let rule = Rule {
        nth: Some(nth),
        action,
        ..Rule::hold("rule", Role::Daemon, point)
    };
    daemon.follow(rule);
}

fn asking(daemon: &TestDaemon) -> AgentSpec {
    AgentSpec {
        permissions: vec![Permission {
            tool: "shell".to_owned(),
            pattern: None,
            decision: Decision::Ask,
            needs: Vec::new(),
        }],
        ..daemon.spec()
    }
}

/// A client knew that the agent waits for the user. It lost the daemon while it asked what the agent waits for, and
/// exited as if it knew nothing.
#[test]
fn a_daemon_that_dies_while_a_client_asks_what_is_waited_for_changes_no_exit_code() {
    let daemon = TestDaemon::empty();
    // The first one is that it was created.
    plan(&daemon, "before-answer.agents", 2, Action::Kill);
    daemon.start_daemon();
    daemon.create_with("coder", asking(&daemon));
    let sent = daemon.send("coder", "do: call shell {\"command\": \"true\"}");
    daemon.until_kind("coder", Kind::ApprovalRequested);
    let waited = daemon.cli(&["wait", "coder", &sent.prompt.to_string()]);
    assert_eq!(waited.status.code(), Some(6), "{waited:?}");
    let died = Passed::of_rule(&daemon.root(), "rule").unwrap();
    assert!(died.is_some(), "the daemon did not die");
    daemon.cli(&["daemon", "stop"]);
}

/// A process that had just been started with the key was told to end, because the process before it had none:
/// every further request of a client started another process.
#[test]
fn a_process_that_is_about_to_get_the_key_is_left_alone() {
    let daemon = TestDaemon::empty();
    let second = Rule {
        process: Some(2),
        ..Rule::hold("rule", Role::Runtime, "before-runtime-lock")
    };
    daemon.follow(second);
    daemon.start_daemon();
    let create = Create {
        name: Some("coder".to_owned()),
        spec: daemon.spec(),
        prompt: Some("do: say hello".to_owned()),
        ..Create::default()
    };
    let created = daemon.block(daemon.client().create(&create)).unwrap();
    daemon.until_kind("coder", Kind::TurnPaused);
    let continue_turn = || {
        let (client, env) = (daemon.client(), daemon.caller());
        daemon.spawn(async move { client.continue_turn("coder", &Start::with(env)).await })
    };
    let first = continue_turn();
    until("the second process", || {
        Passed::of_rule(&daemon.root(), "rule").unwrap()
    });
    let second = continue_turn();
    until("both to be asked", || {
        let agent = daemon.show("coder");
        (agent.process.pid.is_some()).then_some(())
    });
    Passed::release(&daemon.root(), "rule").unwrap();
    for asked in [first, second] {
        daemon.block(asked).unwrap().unwrap();
    }
    assert_eq!(
        daemon.answer("coder", created.prompt.unwrap()).text,
        "hello"
    );
    daemon.completed("coder", "do: say more");
    assert_eq!(daemon.count("coder", Kind::IncarnationBegan), 2);
}

/// A SIGTERM arrived while `daemon stop` was answered, and ended only the daemon. The agents' processes continued,
/// although the answer said that they end.
#[test]
fn a_signal_takes_nothing_back_of_a_stop_that_was_answered() {
    for point in ["on-request.daemon_stop", "before-answer.daemon_stop"] {
        let daemon = TestDaemon::empty();
        plan(&daemon, point, 1, Action::Term);
        daemon.start_daemon();
        daemon.create("coder");
        daemon.completed("coder", "do: say hello");
        let pid = until("a process", || daemon.pid("coder"));
        let stopped = daemon.cli(&["daemon", "stop"]);
        let is_answered = stopped.status.code() == Some(0);
        // Before it was looked at, it may as well be refused.
        assert!(is_answered || point.starts_with("on-"), "{stopped:?}");
        if is_answered {
            until("the end of the agent's process", || {
                crate::test_daemon::reap(pid);
                (!std::path::Path::new(&format!("/proc/{pid}")).exists()).then_some(())
            });
        }
    }
}

/// A user who sets the variable by mistake gets an error, and nothing is started.
#[test]
fn outside_the_lab_its_switches_are_refused() {
    let daemon = TestDaemon::new();
    let elsewhere = tempfile::tempdir().unwrap();
    for has_token in [false, true] {
        if has_token {
            Plan::default().write(elsewhere.path()).unwrap();
        }
        let mut command = daemon.command();
        command.args(["list"]).env(VARIABLE, elsewhere.path());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("is only for the lab"), "{text}");
        assert!(text.contains("unset AGENTD_LAB"), "{text}");
    }
    assert_eq!(daemon.block(daemon.client().daemon()).unwrap().agents, 0);
}

/// A rule applies once: the next process continues where the first one died.
#[test]
fn a_process_that_dies_at_a_point_dies_there_once() {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    daemon.hold_runtime("before-message");
    daemon.start_daemon();
    daemon.create("coder");
    let sent = daemon.send("coder", "do: say hello");
    daemon.until_held();
    daemon.kill_runtime("coder");
    assert_eq!(daemon.answer("coder", sent.prompt).text, "hello");
    until("peace", || {
        (daemon.show("coder").phase == Phase::Idle).then_some(())
    });
}

/// A command of an agent called `agentd` while there was no daemon, and started one as its own descendant. The command
/// then never ended, and its end would have ended the daemon.
#[test]
fn a_command_of_an_agent_starts_no_daemon() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let agentd = crate::test_daemon::AGENTD;
    let home = daemon.home();
    let tries = ["list", "daemon start", "daemon run"].map(|verb| {
        let agentd = format!("AGENTD_HOME='{}' '{agentd}'", home.display());
        format!("{agentd} {verb} 2>> said; echo $? >> codes")
    });
    let script = format!(
        "touch ready; until [ -e go ]; do sleep 0.02; done; {}; touch done",
        tries.join("; ")
    );
    let script = serde_json::json!({ "command": script });
    let sent = daemon.send("coder", &format!("do: call shell {script} ;; say done"));
    let work = daemon.work();
    until("the command", || work.join("ready").exists().then_some(()));
    daemon.kill_daemon();
    std::fs::write(work.join("go"), "").unwrap();
    until("its end", || work.join("done").exists().then_some(()));
    assert_eq!(
        std::fs::read_to_string(work.join("codes")).unwrap(),
        "4\n4\n4\n"
    );
    let said = std::fs::read_to_string(work.join("said")).unwrap();
    assert_eq!(
        said.matches("an agent's command cannot start it").count(),
        3,
        "{said}"
    );
    assert!(daemon.block(daemon.client().daemon()).is_err());
    daemon.start_daemon();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Completed, "{answer:#?}");
}

/// A task that is stopped before its program starts is reported as not started.
#[test]
fn a_task_that_is_stopped_before_it_begins_was_never_started() {
    let daemon = TestDaemon::empty();
    let rule = Rule {
        action: Action::Term,
        ..Rule::hold("rule", Role::Shim, "after-claim.shim")
    };
    daemon.follow(rule);
    daemon.start_daemon();
    daemon.create("coder");
    let call = serde_json::json!({"command": "touch began", "run_in_background": true});
    daemon.completed("coder", &format!("do: call shell {call} ;; say done"));
    let ended = daemon.until_kind("coder", Kind::TaskEnded);
    let Body::TaskEnded(ended) = ended.body else {
        panic!("{ended:?}");
    };
    assert_eq!(ended.exit, TaskExit::NotStarted);
    assert!(!daemon.work().join("began").exists());
    daemon.cli(&["daemon", "stop"]);
}
