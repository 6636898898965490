//! The daemon ends and another one starts: no running work is interrupted.

use crate::test_daemon::{TestDaemon, kill, until};
use agentd_client::api::{EventQuery, Item, Status};
use agentd_core::event::{Event, Kind};
use rustix::process::Signal;
use std::collections::BTreeMap;

/// What an agent does while its daemon dies.
fn work(n: usize) -> String {
    let words = "word ".repeat(60);
    let shell = |command: String| serde_json::json!({ "command": command });
    match n % 3 {
        0 => format!("do: slowly 25 {words} ;; say never"),
        1 => {
            let call = shell(format!("echo {n} >> effects; sleep 1; echo done"));
            format!("do: call shell {call} ;; say done")
        }
        _ => {
            let call = serde_json::json!({
                "command": format!("echo {n} >> effects; sleep 2"), "run_in_background": true,
            });
            format!("do: call shell {call} ;; slowly 25 {words}")
        }
    }
}

fn daemon_dies(signal: Signal) {
    const AGENTS: usize = 20;
    let daemon = TestDaemon::new();
    let names: Vec<String> = (0..AGENTS).map(|n| format!("agent-{n}")).collect();
    let mut sent = Vec::new();
    for (n, name) in names.iter().enumerate() {
        daemon.create(name);
        sent.push(daemon.send(name, &work(n)));
    }
    // In the middle: all have asked the model, and those with tools have started them.
    for name in &names {
        daemon.until_kind(name, Kind::RequestSent);
    }
    until("the tools", || {
        (daemon.effects().len() >= AGENTS * 2 / 3 - 1).then_some(())
    });
    let before: BTreeMap<&String, _> = names
        .iter()
        .map(|name| (name, daemon.show(name).process))
        .collect();
    assert!(
        before.values().all(|process| process.pid.is_some()),
        "{before:#?}"
    );

    daemon.signal_daemon(signal);
    if signal == Signal::TERM {
        daemon.replace_program();
    }
    daemon.start_daemon();

    for (name, sent) in names.iter().zip(&sent) {
        let answer = daemon.answer(name, sent.prompt);
        assert_eq!(answer.status, Status::Completed, "{name}: {answer:#?}");
        match signal {
            // The new daemon is of another build: it ends the old process, but not before the turn has ended.
            Signal::TERM => until("the end of the old process", || {
                (daemon.show(name).process.pid != before[name].pid).then_some(())
            }),
            _ => {
                // A turn that was over before may be told of sooner than its process has come.
                let after = until("its process", || {
                    let process = daemon.show(name).process;
                    process.pid.is_some().then_some(process)
                });
                assert_eq!(after.pid, before[name].pid, "{name} was restarted");
            }
        }
        let events = daemon.events(name);
        let seqs: Vec<u64> = events.iter().map(|event| event.seq.0).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "{name}");
        let of = |kind: Kind| events.iter().filter(|event| event.kind() == kind).count();
        assert_eq!(of(Kind::IncarnationBegan), 1, "{name}");
        assert_eq!(
            (of(Kind::TurnStarted), of(Kind::TurnEnded)),
            (1, 1),
            "{name}"
        );
    }
    let mut effects = daemon.effects();
    effects.sort();
    effects.dedup();
    assert_eq!(effects.len(), daemon.effects().len(), "a tool ran twice");
    daemon.requests();
    daemon.verify();
}

/// pitchfork#633, #887: processes were orphaned after a crash. Here the next daemon adopts them, by their identity.
#[test]
fn twenty_turns_outlive_a_killed_daemon() {
    daemon_dies(Signal::KILL);
}

#[test]
fn twenty_turns_outlive_a_daemon_that_is_replaced() {
    daemon_dies(Signal::TERM);
}

#[test]
fn a_reader_that_comes_back_sees_each_event_once() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let words = "word ".repeat(40);
    let sent = daemon.send("coder", &format!("do: slowly 25 {words}"));
    let mut seen: Vec<Event> = Vec::new();
    let mut deltas = 0;
    let read = |seen: &mut Vec<Event>, deltas: &mut usize, until_delta: bool| {
        daemon.block(async {
            let query = EventQuery {
                after: seen.last().map_or(0, |event| event.seq.0),
                ..EventQuery::default()
            };
            let mut events = daemon.client().follow("coder", &query).await.unwrap();
            while let Some(Ok(item)) = events.next().await {
                match item {
                    Item::Event(event) => {
                        let is_last = event.kind() == Kind::TurnEnded;
                        seen.push(*event);
                        if is_last {
                            return;
                        }
                    }
                    Item::Delta(_) => {
                        *deltas += 1;
                        if until_delta && *deltas > 3 {
                            return;
                        }
                    }
                    Item::Progress(_) | Item::CaughtUp => {}
                }
            }
        });
    };
    read(&mut seen, &mut deltas, true);
    daemon.kill_daemon();
    daemon.start_daemon();
    read(&mut seen, &mut deltas, false);
    daemon.answer("coder", sent.prompt);
    let all = daemon.events("coder");
    let all: Vec<&Event> = all.iter().take(seen.len()).collect();
    assert_eq!(seen.iter().collect::<Vec<_>>(), all);
    assert!(deltas > 3, "what streams is seen as it comes");
}

/// `daemon stop` ends the processes, and the turns continue when a daemon runs again.
/// claude-code#79569, #79789: a restart killed agents silently, or started agents that the user had stopped.
#[test]
fn stopping_the_daemon_stops_runtimes_and_keeps_what_is_wanted() {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    daemon.start_daemon();
    for name in ["works", "stopped"] {
        daemon.create(name);
    }
    daemon.completed("stopped", "do: say hello");
    let stop = agentd_client::api::Stop::default();
    daemon
        .block(daemon.client().stop("stopped", &stop))
        .unwrap();
    let call = serde_json::json!({ "command": "echo once >> effects; sleep 1" });
    let sent = daemon.send("works", &format!("do: call shell {call} ;; say done"));
    daemon.until_kind("works", Kind::ToolStarted);
    let pid = until("a process", || daemon.pid("works"));
    daemon.block(daemon.client().stop_daemon()).unwrap();
    until("the daemon's end", || {
        daemon
            .block(daemon.client().daemon())
            .is_err()
            .then_some(())
    });
    until("the runtime's end", || {
        crate::test_daemon::reap(pid);
        (!std::path::Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
    daemon.start_daemon();
    let answer = daemon.answer("works", sent.prompt);
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (Status::Completed, "done")
    );
    assert_eq!(daemon.effects(), ["once"]);
    let stopped = daemon.show("stopped");
    assert_eq!((stopped.process.pid, stopped.stopped), (None, true));
    daemon.verify();
}

/// The daemon sends no signal to a process that has the former pid of a runtime.
#[test]
fn a_stranger_with_a_runtimes_pid_is_left_alone() {
    let daemon = TestDaemon::new();
    let agent = daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    daemon.kill_daemon();
    let lock = daemon.home().join(format!("run/agents/{}.lock", agent.id));
    let before: serde_json::Value = serde_json::from_slice(&std::fs::read(&lock).unwrap()).unwrap();
    let pid = u32::try_from(before["pid"].as_u64().unwrap()).unwrap();
    kill(pid, Signal::KILL);
    until("its end", || {
        crate::test_daemon::reap(pid);
        (!std::path::Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
    // The lock names a live process that does not hold it.
    let mut stranger = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let identity = agentd_process::Identity::of(stranger.id()).unwrap();
    std::fs::write(&lock, serde_json::to_vec(&identity).unwrap()).unwrap();
    daemon.start_daemon();
    daemon.completed("coder", "do: say again");
    let stop = agentd_client::api::Stop::default();
    daemon.block(daemon.client().stop("coder", &stop)).unwrap();
    assert!(stranger.try_wait().unwrap().is_none(), "it was signalled");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}
