//! Commands during the death of a daemon: reads are repeated, and changes are made once.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Checkpoint, Create, Purge, Reset, Send, Start, Stop};
use agentd_client::{Error, Kind};
use agentd_core::event::{Body, Kind as EventKind};
use agentd_core::id::OpId;
use agentd_failpoint::Passed;
use agentd_failpoint::plan::{Action, Role, Rule};
use rustix::process::Signal;
use serde_json::Value;
use std::process::{Output, Stdio};

fn op(text: &str) -> Option<OpId> {
    Some(text.parse().unwrap())
}

fn conflict(error: Error) -> String {
    match error {
        Error::Problem(problem) if problem.kind == Kind::Conflict => {
            assert!(problem.next.is_some(), "{problem:#?}");
            problem.title
        }
        other => panic!("{other:?}"),
    }
}

/// The next daemon is killed at this failpoint, once.
fn killed_at(daemon: &TestDaemon, point: &str, nth: u32) {
    let kill = Rule {
        nth: Some(nth),
        action: Action::Kill,
        ..Rule::hold("rule", Role::Daemon, point)
    };
    daemon.follow(kill);
}

fn is_hit(daemon: &TestDaemon) -> bool {
    Passed::of_rule(&daemon.root(), "rule").unwrap().is_some()
}

fn operations(daemon: &TestDaemon, name: &str) -> usize {
    daemon.count(name, EventKind::Operation)
}

/// A noun of the API, a command, and the event that it causes.
type Change<'a> = (&'a str, &'a [&'a str], fn(&Body) -> bool);

/// Regression: `reset` failed in 113 of 150 kills, and the client could not tell whether the reset had been made.
#[test]
fn a_change_is_made_once_though_the_daemon_dies_over_it() {
    let renamed: fn(&Body) -> bool = |body| matches!(body, Body::AgentRenamed(_));
    let changes: [Change<'_>; 9] = [
        ("reset", &["reset", "coder"], |body| {
            matches!(body, Body::ResetEnded(_))
        }),
        ("rename", &["rename", "coder", "writer"], renamed),
        ("stop", &["stop", "coder"], |body| {
            matches!(body, Body::AgentStopped(_))
        }),
        (
            "checkpoint",
            &["checkpoint", "coder", "here"],
            |body| matches!(body, Body::CheckpointSet(set) if set.label == "here"),
        ),
        ("spec", &["set", "coder", "title=hello"], |body| {
            matches!(body, Body::SpecSet(_))
        }),
        ("archive", &["rm", "coder"], |body| {
            matches!(body, Body::AgentArchived(_))
        }),
        ("fork", &["fork", "coder", "other"], |body| {
            matches!(body, Body::AgentCreated(_))
        }),
        (
            "agents",
            &["create", "other", "--provider", "demo"],
            |body| matches!(body, Body::AgentCreated(_)),
        ),
        ("restart", &["restart", "coder"], |body| {
            matches!(body, Body::IncarnationBegan(_))
        }),
    ];
    for (noun, args, is_it) in changes {
        let daemon = TestDaemon::empty();
        daemon.start_daemon();
        daemon.create("coder");
        let agent = daemon.show("coder").id.to_string();
        daemon.signal_daemon(Signal::TERM);
        // It is made, and the answer is lost.
        // The settings are looked at before they are set.
        let nth = if noun == "spec" { 2 } else { 1 };
        killed_at(&daemon, &format!("before-answer.{noun}"), nth);
        daemon.start_daemon();
        let ran = daemon.cli(args);
        assert!(ran.status.success(), "{args:?}: {ran:?}\n{}", daemon.log());
        assert!(is_hit(&daemon), "{args:?}: the daemon did not die");
        let of = match noun {
            "fork" | "agents" => "other",
            _ => &agent,
        };
        if noun == "restart" {
            daemon.until_kind(of, EventKind::IncarnationBegan);
        }
        let events = daemon.events(of);
        let times = events.iter().filter(|event| is_it(&event.body)).count();
        let before = usize::from(noun == "spec");
        assert_eq!(times, 1 + before, "{args:?}: {events:#?}");
        daemon.cli(&["daemon", "stop"]);
        daemon.verify();
    }
}

/// Daemons that die while one command runs.
const KILLS_EACH: u32 = 3;

/// Regression: `list` failed in 32 of 150 kills.
#[test]
fn commands_succeed_while_the_daemon_is_killed_again_and_again() {
    let daemon = TestDaemon::empty();
    let stop = std::sync::atomic::AtomicBool::new(false);
    // A daemon that dies each time it answers could keep a command from its end for longer than it tries.
    let kills_left = std::sync::atomic::AtomicU32::new(0);
    let create = daemon.cli(&["create", "coder", "--provider", "demo"]);
    assert!(create.status.success(), "{create:?}");
    let json = |output: &Output| -> Value { serde_json::from_slice(&output.stdout).unwrap() };
    let (mut kills, mut resets) = (0, Vec::new());
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let mut kills = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                // Whichever runs now, a moment after it has begun to listen.
                let running = daemon.block(daemon.client().daemon());
                let is_due = kills_left.load(std::sync::atomic::Ordering::Relaxed) > 0;
                if let (Ok(running), true) = (running, is_due) {
                    crate::test_daemon::kill(running.pid, Signal::KILL);
                    kills_left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
                    kills += 1;
                    until("its end", || {
                        let now = daemon.block(daemon.client().daemon());
                        now.map_or(true, |now| now.pid != running.pid).then_some(())
                    });
                }
            }
            kills
        });
        let killed_during = |args: &[&str]| {
            kills_left.store(KILLS_EACH, std::sync::atomic::Ordering::Relaxed);
            daemon.cli(args)
        };
        for _ in 0..6 {
            let list = killed_during(&["list", "--json"]);
            let reset = killed_during(&["reset", "coder", "--json"]);
            let show = killed_during(&["show", "coder", "--json"]);
            stop.store(
                !list.status.success() || !reset.status.success() || !show.status.success(),
                std::sync::atomic::Ordering::Relaxed,
            );
            assert!(list.status.success(), "{list:?}");
            assert!(reset.status.success(), "{reset:?}");
            assert!(show.status.success(), "{show:?}");
            resets.push(json(&reset)["op"].as_str().unwrap().to_owned());
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        kills = killer.join().unwrap();
    });
    assert!(kills > 0);
    let list = daemon.cli(&["list"]);
    assert!(list.status.success(), "{list:?}");
    let events = daemon.events("coder");
    let ended: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::ResetEnded(ended) => Some(ended.op.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(ended, resets);
    daemon.cli(&["daemon", "stop"]);
    daemon.verify();
}

/// A change that is not answered for 15 seconds names its op.
#[test]
fn a_change_that_nobody_answers_names_its_op() {
    let daemon = TestDaemon::empty();
    daemon.start_daemon();
    daemon.create("coder");
    let mut command = daemon.command();
    command.args(["rename", "coder", "writer", "--op", "to-writer"]);
    killed_at(&daemon, "on-request.rename", 1);
    daemon.signal_daemon(Signal::TERM);
    daemon.start_daemon();
    // Once it is dead no other can start: there is no journal to open.
    let journal = daemon.home().join("journal.db");
    let aside = daemon.home().join("journal.aside");
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("its death", || is_hit(&daemon).then_some(()));
    std::fs::rename(&journal, &aside).unwrap();
    std::fs::create_dir(&journal).unwrap();
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(4), "{ran:?}");
    let err = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(err.contains("to-writer") && err.contains("--op"), "{err}");
}

#[test]
fn an_op_is_any_short_text_and_stands_for_one_change() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let client = daemon.client().under(op("deploy 42 ü"));
    let agent = daemon.block(client.rename("coder", "writer")).unwrap();
    assert_eq!(agent.name, "writer");
    // Again: it is made once, though the name has changed since.
    daemon
        .block(daemon.client().rename("writer", "third"))
        .unwrap();
    let again = daemon.block(client.rename("coder", "writer")).unwrap();
    assert_eq!(again.name, "third");
    assert_eq!(daemon.count("third", EventKind::AgentRenamed), 2);
    // For something else it is a conflict, with a next step.
    let other = daemon.block(client.rename("coder", "fourth")).unwrap_err();
    assert!(conflict(other).contains("deploy 42 ü"));
    let start = Start::default();
    conflict(
        daemon
            .block(client.continue_turn("third", &start))
            .unwrap_err(),
    );
    let reset = Reset {
        op: op("deploy 42 ü"),
        ..Reset::default()
    };
    conflict(
        daemon
            .block(daemon.client().reset("third", &reset))
            .unwrap_err(),
    );
    // On the command line too.
    let ran = daemon.cli(&["reset", "third", "--op", "release/1.2 (again)", "--json"]);
    assert!(ran.status.success(), "{ran:?}");
    let same = daemon.cli(&["reset", "third", "--op", "release/1.2 (again)", "--json"]);
    assert_eq!(ran.stdout, same.stdout);
    let undo = daemon.cli(&["reset", "third", "--undo", "--op", "release/1.2 (again)"]);
    assert_eq!(undo.status.code(), Some(3), "{undo:?}");
    for bad in ["", &"x".repeat(129), "a\nb"] {
        let ran = daemon.cli(&["reset", "third", "--op", bad]);
        assert_eq!(ran.status.code(), Some(2), "{ran:?}");
    }
}

/// Without an answer the client does not know: a second create under the same op finds the agent and its prompt.
#[test]
fn an_agent_is_created_once_with_its_first_prompt() {
    let daemon = TestDaemon::new();
    let create = |prompt: &str| Create {
        name: Some("coder".to_owned()),
        spec: daemon.spec(),
        prompt: Some(prompt.to_owned()),
        env: daemon.caller(),
        ..Create::default()
    };
    let client = daemon.client().under(op("make-coder"));
    let first = daemon
        .block(client.create(&create("do: say hello")))
        .unwrap();
    let again = daemon
        .block(client.create(&create("do: say hello")))
        .unwrap();
    assert_eq!(
        (first.agent.id, first.prompt),
        (again.agent.id, again.prompt)
    );
    conflict(
        daemon
            .block(client.create(&create("do: say other")))
            .unwrap_err(),
    );
    assert_eq!(daemon.answer("coder", first.prompt.unwrap()).text, "hello");
    assert_eq!(daemon.count("coder", EventKind::PromptQueued), 1);
}

/// Regression: a prompt with a known key and another text counted as the same prompt, and its text was lost.
#[test]
fn a_key_with_another_text_is_a_conflict() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let send = |text: &str| Send {
        text: text.to_owned(),
        key: Some("build-1".to_owned()),
        env: daemon.caller(),
        ..Send::default()
    };
    let first = daemon
        .block(daemon.client().send("coder", &send("do: say one")))
        .unwrap();
    let again = daemon
        .block(daemon.client().send("coder", &send("do: say one")))
        .unwrap();
    assert!(again.repeated);
    assert_eq!(first.prompt, again.prompt);
    daemon.answer("coder", first.prompt);
    let other = daemon.block(daemon.client().send("coder", &send("do: say two")));
    conflict(other.unwrap_err());
    assert_eq!(daemon.count("coder", EventKind::PromptQueued), 1);
}

/// Regression: `kept` and `killed` were computed from the current state, and a task that had ended by itself counted as
/// killed.
#[test]
fn the_same_op_gives_the_same_receipt() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let leave = |command: &str| {
        let call = serde_json::json!({ "command": command, "run_in_background": true });
        daemon.completed("coder", &format!("do: call shell {call} ;; say left"));
        *daemon.show("coder").tasks.last().unwrap()
    };
    let kept = leave("while ! [ -e go ]; do sleep 0.02; done");
    let reset = |op_of: &str, kill_background| Reset {
        op: op(op_of),
        kill_background,
        ..Reset::default()
    };
    let first = daemon
        .block(daemon.client().reset("coder", &reset("one", false)))
        .unwrap();
    assert_eq!(
        (&first.kept[..], &first.killed.tasks[..]),
        (&[kept][..], &[][..])
    );
    // It ends by itself, and another one begins: neither changes what was.
    std::fs::write(daemon.work().join("go"), "").unwrap();
    until("its end", || {
        daemon.show("coder").tasks.is_empty().then_some(())
    });
    let long = leave("sleep 600");
    daemon
        .block(daemon.client().rename("coder", "writer"))
        .unwrap();
    let again = daemon
        .block(daemon.client().reset("writer", &reset("one", false)))
        .unwrap();
    assert_eq!(first, again);
    // One that is killed is killed, one that has ended by itself meanwhile is not.
    let short = {
        let call = serde_json::json!({ "command": "while ! [ -e now ]; do sleep 0.02; done", "run_in_background": true });
        daemon.completed("writer", &format!("do: call shell {call} ;; say left"));
        *daemon
            .show("writer")
            .tasks
            .iter()
            .find(|task| **task != long)
            .unwrap()
    };
    daemon
        .block(daemon.client().stop("writer", &Stop::default()))
        .unwrap();
    std::fs::write(daemon.work().join("now"), "").unwrap();
    let dir = daemon
        .home()
        .join("agents")
        .join(daemon.show("writer").id.to_string());
    let exit = dir.join("tasks").join(short.to_string()).join("exit");
    until("its end", || exit.exists().then_some(()));
    let second = daemon
        .block(daemon.client().reset("writer", &reset("two", true)))
        .unwrap();
    assert_eq!(second.killed.tasks, [long]);
    assert_eq!(second.kept, []);
    let again = daemon
        .block(daemon.client().reset("writer", &reset("two", true)))
        .unwrap();
    assert_eq!(second, again);
}

#[test]
fn each_change_answers_a_repeated_op_as_before() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    let under = |text: &str| daemon.client().under(op(text));
    let checkpoint = Checkpoint { label: None };
    let first = daemon
        .block(under("c").checkpoint("coder", &checkpoint))
        .unwrap();
    daemon.completed("coder", "do: say more");
    let again = daemon
        .block(under("c").checkpoint("coder", &checkpoint))
        .unwrap();
    assert_eq!(first, again);
    // A restart that was made is not made again.
    let restart = agentd_client::api::Restart::default();
    daemon.block(under("r").restart("coder", &restart)).unwrap();
    let pid = until("a process", || daemon.pid("coder"));
    until("its incarnation", || {
        (daemon.count("coder", EventKind::IncarnationBegan) == 2).then_some(())
    });
    daemon.block(under("r").restart("coder", &restart)).unwrap();
    assert_eq!(daemon.pid("coder"), Some(pid));
    // A repeated stop does not stop an agent that was started again since.
    daemon
        .block(under("s").stop("coder", &Stop::default()))
        .unwrap();
    daemon
        .block(daemon.client().start("coder", &Start::default()))
        .unwrap();
    daemon
        .block(under("s").stop("coder", &Stop::default()))
        .unwrap();
    assert!(!daemon.show("coder").stopped);
    // Removed, found again by its op, restored, and purged.
    let archive = agentd_client::api::Archive::default();
    let removed = daemon
        .block(under("rm").archive("coder", &archive))
        .unwrap();
    let again = daemon
        .block(under("rm").archive("coder", &archive))
        .unwrap();
    assert_eq!(
        (removed.agent.id, removed.ended),
        (again.agent.id, again.ended)
    );
    daemon
        .block(under("back").restore("coder", &Default::default()))
        .unwrap();
    daemon
        .block(under("back").restore("coder", &Default::default()))
        .unwrap();
    daemon
        .block(daemon.client().archive("coder", &archive))
        .unwrap();
    let purge = Purge::default();
    let gone = daemon.block(under("p").purge("coder", &purge)).unwrap();
    let again = daemon.block(under("p").purge("coder", &purge)).unwrap();
    assert!(gone.events > 0);
    assert_eq!(
        (gone.conversations, gone.events),
        (again.conversations, again.events)
    );
    assert_eq!(operations(&daemon, "coder"), 6);
}

#[test]
fn an_interrupt_and_a_task_that_are_ended_stay_ended() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let under = |text: &str| daemon.client().under(op(text));
    let sent = daemon.send("coder", "do: hang");
    daemon.until_kind("coder", EventKind::RequestSent);
    daemon.block(under("i").interrupt("coder")).unwrap();
    daemon.answer("coder", sent.prompt);
    // The next turn is another one.
    let next = daemon.send("coder", "do: hang");
    until("its turn", || {
        (daemon.count("coder", EventKind::RequestSent) == 2).then_some(())
    });
    daemon.block(under("i").interrupt("coder")).unwrap();
    assert!(daemon.show("coder").turn.is_some());
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    daemon.answer("coder", next.prompt);
    let call = serde_json::json!({ "command": "sleep 600", "run_in_background": true });
    daemon.completed("coder", &format!("do: call shell {call} ;; say left"));
    let task = daemon.show("coder").tasks[0];
    let stopped = daemon
        .block(under("t").stop_tasks(&task.to_string()))
        .unwrap();
    assert_eq!(stopped.tasks.len(), 1);
    until("its end", || {
        daemon.show("coder").tasks.is_empty().then_some(())
    });
    let again = daemon
        .block(under("t").stop_tasks(&task.to_string()))
        .unwrap();
    assert_eq!(
        (again.tasks[0].id, again.tasks[0].exit),
        (stopped.tasks[0].id, stopped.tasks[0].exit)
    );
}

/// A control: a daemon that forgets its ops makes a change twice.
#[test]
fn a_daemon_that_forgets_its_ops_is_found_out() {
    let daemon = TestDaemon::empty();
    daemon.mistake("op_forgotten");
    daemon.start_daemon();
    daemon.create("coder");
    let client = daemon.client().under(op("here"));
    let label = Some("here".to_owned());
    let checkpoint = Checkpoint { label };
    let first = daemon
        .block(client.checkpoint("coder", &checkpoint))
        .unwrap();
    let again = daemon
        .block(client.checkpoint("coder", &checkpoint))
        .unwrap();
    assert_ne!(first.seq, again.seq);
}
