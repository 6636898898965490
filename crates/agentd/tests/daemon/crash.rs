//! A runtime dies in each phase of a turn: the next one recovers, and the turn continues by itself.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Restart, Start, Status, Stop};
use agentd_core::event::Kind;
use agentd_core::spec::{self, AgentSpec, OnCrash};
use agentd_core::state::Phase;

fn shell(command: &str) -> String {
    format!("call shell {}", serde_json::json!({ "command": command }))
}

/// OpenHands SDK#4893, sagents#159: "running" without a process.
#[test]
fn a_runtime_that_dies_while_the_model_speaks_goes_on() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let words = "word ".repeat(40);
    let sent = daemon.send("coder", &format!("do: slowly 20 {words} ;; say after"));
    daemon.until_kind("coder", Kind::RequestSent);
    until("some words", || {
        let dir = daemon.block(daemon.client().agent("coder")).ok()?;
        dir.turn.map(|_| ())
    });
    daemon.kill_runtime("coder");
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Completed, "{answer:#?}");
    assert_eq!(daemon.count("coder", Kind::IncarnationBegan), 2);
    daemon.requests();
    daemon.verify();
}

/// goose#11808, langgraph#7417: a tool that had run was run again.
#[test]
fn a_runtime_that_dies_in_a_tool_waits_for_it_and_runs_it_once() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let call = shell("echo once >> effects; sleep 1; echo result");
    let sent = daemon.send("coder", &format!("do: {call} ;; say done"));
    until("the tool", || (daemon.effects().len() == 1).then_some(()));
    daemon.kill_runtime("coder");
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (Status::Completed, "done")
    );
    assert_eq!(daemon.effects(), ["once"]);
    daemon.requests();
    daemon.verify();
}

/// codex#12382: a turn was shown as "working" and never ended.
#[test]
fn a_turn_that_dies_three_times_without_progress_is_lost() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let sent = daemon.send("coder", "do: hang");
    for tries in 1..=3 {
        until("a request", || {
            (daemon.model.requests().len() == tries).then_some(())
        });
        daemon.kill_runtime("coder");
    }
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Lost, "{answer:#?}");
    assert!(answer.error.is_some());
    assert_eq!(daemon.model.requests().len(), 3, "there is no fourth try");
    let error = daemon.show("coder").error.unwrap();
    assert!(error.contains("died repeatedly"), "{error}");
    // The agent itself is well.
    let next = daemon.completed("coder", "do: say well");
    assert_eq!(next.text, "well");
    assert_eq!(daemon.show("coder").phase, Phase::Idle);
}

#[test]
fn an_agent_that_is_to_wait_after_a_crash_waits_for_continue() {
    let daemon = TestDaemon::new();
    let spec = AgentSpec {
        on_crash: OnCrash::Wait,
        ..daemon.spec()
    };
    daemon.create_with("coder", spec);
    let sent = daemon.send(
        "coder",
        "do: fail 529 x1 | slowly 20 a b c d e f g h i j k l m n o p",
    );
    daemon.until_kind("coder", Kind::RequestSent);
    daemon.kill_runtime("coder");
    until("waiting", || {
        (daemon.show("coder").phase == Phase::Waiting).then_some(())
    });
    let error = daemon.show("coder").error.unwrap();
    assert!(error.contains("agentd continue coder"), "{error}");
    let start = Start::default();
    daemon
        .block(daemon.client().continue_turn("coder", &start))
        .unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Completed, "{answer:#?}");
}

#[test]
fn one_that_is_not_to_be_restarted_fails_and_says_so() {
    let daemon = TestDaemon::new();
    let spec = AgentSpec {
        restart: spec::Restart::Never,
        ..daemon.spec()
    };
    daemon.create_with("coder", spec);
    let sent = daemon.send("coder", "do: hang");
    daemon.until_kind("coder", Kind::RequestSent);
    daemon.kill_runtime("coder");
    until("failure", || {
        (daemon.show("coder").phase == Phase::Failed).then_some(())
    });
    assert_eq!(daemon.show("coder").process.pid, None);
    let stop = Stop::default();
    daemon.block(daemon.client().stop("coder", &stop)).unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted);
}

/// process-compose#149, supervisor#1101, #734: stop lost to restart, and children survived.
#[test]
fn stop_beats_every_restart_policy() {
    let daemon = TestDaemon::new();
    let spec = AgentSpec {
        restart: spec::Restart::Always,
        ..daemon.spec()
    };
    daemon.create_with("coder", spec);
    let sent = daemon.send("coder", &format!("do: {} ;; say done", shell("sleep 60")));
    daemon.until_kind("coder", Kind::ToolStarted);
    let stop = Stop::default();
    let agent = daemon.block(daemon.client().stop("coder", &stop)).unwrap();
    assert_eq!((agent.process.pid, agent.phase), (None, Phase::Stopped));
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Interrupted
    );
    // What comes waits until it is started.
    let later = daemon.send("coder", "do: say later");
    assert_eq!(daemon.pid("coder"), None);
    let start = Start::default();
    daemon
        .block(daemon.client().start("coder", &start))
        .unwrap();
    assert_eq!(daemon.answer("coder", later.prompt).text, "later");
    daemon.requests();
}

#[test]
fn a_restart_leaves_the_turn_to_the_new_process() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let call = shell("echo once >> effects; sleep 1");
    let sent = daemon.send("coder", &format!("do: {call} ;; say done"));
    until("the tool", || (daemon.effects().len() == 1).then_some(()));
    let before = daemon.show("coder").process;
    let (client, restart) = (daemon.client(), Restart::default());
    daemon.block(client.restart("coder", &restart)).unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (Status::Completed, "done")
    );
    assert_ne!(daemon.show("coder").process.pid, before.pid);
    assert_eq!(daemon.effects(), ["once"]);
    daemon.requests();
}

/// claude-code#42338, #93490: the first request after a restart begins with the messages of the request before it.
#[test]
fn an_idle_agent_goes_to_sleep_and_wakes_with_the_next_prompt() {
    let daemon = TestDaemon::new();
    let spec = AgentSpec {
        idle_ms: 100,
        ..daemon.spec()
    };
    daemon.create_with("coder", spec);
    daemon.completed("coder", "do: say one");
    until("sleep", || daemon.pid("coder").is_none().then_some(()));
    assert_eq!(daemon.show("coder").phase, Phase::Idle);
    assert_eq!(daemon.completed("coder", "do: say two").text, "two");
    let requests = daemon.requests();
    let (first, second) = (&requests[0].body["messages"], &requests[1].body["messages"]);
    let (first, second) = (first.as_array().unwrap(), second.as_array().unwrap());
    assert_eq!(second.len(), first.len() + 2, "it remembers");
}

#[test]
fn one_that_had_a_process_when_it_was_to_have_one_gets_no_other_when_it_sleeps() {
    let daemon = TestDaemon::new();
    let spec = AgentSpec {
        idle_ms: 300,
        ..daemon.spec()
    };
    daemon.create_with("coder", spec);
    let sent = daemon.send("coder", &format!("do: {} ;; say done", shell("sleep 300")));
    daemon.until_kind("coder", Kind::ToolStarted);
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    let start = Start::default();
    daemon
        .block(daemon.client().start("coder", &start))
        .unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted);
    until("sleep", || daemon.pid("coder").is_none().then_some(()));
    // Time enough for another process to come.
    daemon.create("other");
    daemon.completed("other", "do: say hello");
    assert_eq!(daemon.count("coder", Kind::IncarnationBegan), 1);
}
