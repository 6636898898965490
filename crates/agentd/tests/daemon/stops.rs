//! The end of the daemon: after `daemon stop` it stays stopped; after a signal or a crash, clients start another one.

use crate::test_daemon::{TestDaemon, until};
use agentd_core::event::Body;
use agentd_core::event::{Kind, RequestOutcome};
use agentd_failpoint::VARIABLE;
use agentd_failpoint::plan::{Action, Plan, Role, Rule};
use agentd_process::Identity;
use rustix::process::Signal;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

fn start(daemon: &TestDaemon, args: &[&str]) -> Child {
    let mut command = daemon.command();
    command.args(args).envs(daemon.caller());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn ended(mut child: Child) -> Output {
    until("its end", || child.try_wait().unwrap());
    child.wait_with_output().unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Regression: any client that followed events or waited started another daemon within a second after `daemon stop`.
#[test]
fn a_stop_holds_though_clients_watch_and_wait() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let sent = daemon.send("coder", "do: hang");
    daemon.until_kind("coder", Kind::RequestSent);
    let waiting = [
        start(&daemon, &["logs", "coder", "-f"]),
        start(&daemon, &["wait", "coder", &sent.prompt.to_string()]),
        start(&daemon, &["send", "coder", "do: say later"]),
    ];
    until("the second prompt", || {
        (daemon.show("coder").queued == 1).then_some(())
    });
    let stopped = daemon.cli(&["daemon", "stop"]);
    assert!(stopped.status.success(), "{stopped:?}");
    let [logs, wait, send] = waiting.map(ended);
    for output in [&logs, &wait, &send] {
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        assert!(err(output).contains("the daemon was stopped"), "{output:?}");
    }
    assert!(err(&wait).contains(&sent.prompt.to_string()), "{wait:?}");
    assert!(err(&send).contains("agentd wait coder "), "{send:?}");
    // The waiting clients have not started another daemon.
    let status = daemon.cli(&["daemon", "status"]);
    assert_eq!(status.status.code(), Some(4), "{status:?}");
    // A command that needs one does.
    let list = daemon.cli(&["list"]);
    assert!(list.status.success(), "{list:?}");
    daemon.cli(&["daemon", "stop"]);
}

/// Regression: with a model that does not answer, it took 22 seconds, and returned before the process was gone.
#[test]
fn a_stop_does_not_wait_for_the_model_and_returns_when_the_process_is_gone() {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    daemon.start_daemon();
    daemon.create("coder");
    let sent = daemon.send("coder", "do: slowly 50 one two three ;; hang");
    daemon.until_kind("coder", Kind::RequestSent);
    let process = Identity::of(daemon.daemon_pid().unwrap()).unwrap();
    let runtime = Identity::of(until("a process", || daemon.pid("coder"))).unwrap();
    let begin = Instant::now();
    let stopped = daemon.cli(&["daemon", "stop"]);
    assert!(stopped.status.success(), "{stopped:?}");
    // The grace of what cannot be ended is 20 s: it was not used up.
    assert!(
        begin.elapsed() < Duration::from_secs(15),
        "{:?}",
        begin.elapsed()
    );
    assert!(!process.is_alive().unwrap() && !runtime.is_alive().unwrap());
    // The request is on record as lost, and the turn goes on: no crash.
    daemon.start_daemon();
    let events = daemon.events("coder");
    let lost = events.iter().filter(|event| {
        matches!(&event.body, Body::RequestEnded(ended) if ended.outcome == RequestOutcome::Lost)
    });
    assert_eq!(lost.count(), 1);
    until("the next try", || {
        (daemon.count("coder", Kind::RequestSent) == 2).then_some(())
    });
    assert_eq!(daemon.count("coder", Kind::TurnStarted), 1);
    assert_eq!(daemon.count("coder", Kind::TurnPaused), 0);
    daemon.cli(&["interrupt", "coder"]);
    daemon.answer("coder", sent.prompt);
    daemon.verify();
}

/// Regression: for a while after SIGTERM, new commands failed with exit code 4, "another daemon runs".
#[test]
fn a_command_waits_for_a_daemon_that_is_ending() {
    let daemon = TestDaemon::empty();
    // It lets go of its sockets, and then holds the lock until it is told to go on.
    daemon.hold(Role::Daemon, "before-unlock");
    daemon.start_daemon();
    daemon.create("coder");
    let pid = daemon.daemon_pid().unwrap();
    crate::test_daemon::kill(pid, Signal::TERM);
    daemon.until_held();
    let list = start(&daemon, &["list"]);
    // It has started a daemon that waits for the lock.
    until("a second daemon", || {
        let daemons = daemon.processes();
        let daemons = daemons
            .iter()
            .filter(|(_, args)| args.contains("daemon run"));
        (daemons.count() >= 2).then_some(())
    });
    crate::test_daemon::kill(pid, Signal::KILL);
    let list = ended(list);
    assert!(list.status.success(), "{list:?}");
    daemon.cli(&["daemon", "stop"]);
}

/// Regression: a daemon that was killed during its stop was reported as stopped, and the agents' processes continued.
#[test]
fn a_daemon_that_dies_while_it_stops_is_not_called_stopped() {
    let daemon = TestDaemon::empty();
    let kill = Rule {
        action: Action::Kill,
        ..Rule::hold("rule", Role::Daemon, "before-stop")
    };
    daemon.follow(kill);
    daemon.start_daemon();
    daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    let runtime = Identity::of(until("a process", || daemon.pid("coder"))).unwrap();
    let stopped = daemon.cli(&["daemon", "stop"]);
    assert!(stopped.status.success(), "{stopped:?}");
    crate::test_daemon::reap(runtime.pid);
    assert!(!runtime.is_alive().unwrap(), "a process goes on");
    let status = daemon.cli(&["daemon", "status"]);
    assert_eq!(status.status.code(), Some(4), "{status:?}");
}

/// A control: a client that ignores the stop mark starts another daemon.
#[test]
fn a_client_that_undoes_a_stop_is_found_out() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.mistake("stop_undone");
    let mut command = daemon.command();
    command
        .args(["logs", "coder", "-f", "--json"])
        .envs(daemon.caller());
    command.env(VARIABLE, daemon.root());
    let mut logs = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 1];
    std::io::Read::read_exact(logs.stdout.as_mut().unwrap(), &mut first).unwrap();
    let before = daemon.daemon_pid().unwrap();
    daemon.cli(&["daemon", "stop"]);
    let after = until("another daemon", || {
        daemon.block(daemon.client().daemon()).ok()
    });
    assert_ne!(after.pid, before);
    logs.kill().unwrap();
    logs.wait().unwrap();
}

/// A control: a daemon that does not wait for the lock of an ending daemon.
#[test]
fn a_daemon_that_does_not_wait_for_the_lock_is_found_out() {
    let daemon = TestDaemon::empty();
    let plan = Plan {
        injected_bugs: vec!["lock_not_awaited".to_owned()],
        rules: vec![Rule::hold("hold", Role::Daemon, "before-unlock")],
        ..Plan::default()
    };
    plan.write(&daemon.root()).unwrap();
    daemon.daemon_env(VARIABLE, &daemon.root().display().to_string());
    daemon.start_daemon();
    let pid = daemon.daemon_pid().unwrap();
    crate::test_daemon::kill(pid, Signal::TERM);
    daemon.until_held();
    let mut command = daemon.command();
    let list = command
        .args(["list"])
        .env(VARIABLE, daemon.root())
        .output()
        .unwrap();
    assert_eq!(list.status.code(), Some(4), "{list:?}");
    assert!(err(&list).contains("another daemon runs"), "{list:?}");
    crate::test_daemon::kill(pid, Signal::KILL);
}
