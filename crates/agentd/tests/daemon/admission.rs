//! Turns that wait, because the daemon is draining or a limit of the home is reached, and turns that nothing but the
//! daemon takes up again.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Sent, Status};
use agentd_core::event::Kind;
use agentd_core::id::PromptId;
use agentd_process::Identity;
use rustix::process::Signal;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Output, Stdio};

fn config(daemon: &TestDaemon, text: &str) {
    fs::write(daemon.home().join("config.toml"), text).unwrap();
}

/// A daemon with this configuration, and an agent whose turn is running: its model does not answer.
fn busy(text: &str) -> TestDaemon {
    let daemon = TestDaemon::empty();
    config(&daemon, text);
    daemon.daemon_has_keys();
    daemon.start_daemon();
    for name in ["busy", "next"] {
        daemon.create(name);
    }
    daemon.send("busy", "do: hang");
    daemon.until_kind("busy", Kind::RequestSent);
    daemon
}

/// Sends a prompt whose turn must wait for this reason.
fn waits(daemon: &TestDaemon, name: &str, why: &str) -> Sent {
    let sent = daemon.send(name, "do: say done");
    until(why, || {
        let error = daemon.show(name).error?;
        error.contains(why).then_some(())
    });
    sent
}

fn completes(daemon: &TestDaemon, name: &str, prompt: PromptId) {
    let answer = daemon.answer(name, prompt);
    assert_eq!(answer.status, Status::Completed, "{answer:#?}");
    assert_eq!(answer.text, "done");
    assert_eq!(daemon.show(name).error, None);
}

fn ok(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The arguments of a command that ends when the test creates the file `go`.
fn gate() -> serde_json::Value {
    serde_json::json!({ "command": "until [ -e go ]; do sleep 0.05; done" })
}

#[test]
fn a_drain_finishes_turns_and_starts_none() {
    let daemon = TestDaemon::new();
    for name in ["busy", "next"] {
        daemon.create(name);
    }
    let busy = daemon.send("busy", &format!("do: call shell {} ;; say ended", gate()));
    daemon.until_kind("busy", Kind::ToolStarted);
    let said = ok(&daemon.cli(&["daemon", "drain", "--no-wait"]));
    assert!(said.contains("1 turn running"), "{said}");
    let next = waits(&daemon, "next", "draining");
    let status = ok(&daemon.cli(&["daemon", "status"]));
    assert!(
        status.contains("draining: 1 running, 1 waiting"),
        "{status}"
    );
    // Returns when the turn has ended.
    fs::write(daemon.work().join("go"), "").unwrap();
    let said = ok(&daemon.cli(&["daemon", "drain"]));
    assert_eq!(said, "no turn is running, and none is started\n");
    let answer = daemon.answer("busy", busy.prompt);
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (Status::Completed, "ended")
    );
    assert_eq!(daemon.count("next", Kind::TurnStarted), 0);
    ok(&daemon.cli(&["daemon", "drain", "--off"]));
    completes(&daemon, "next", next.prompt);
    daemon.verify();
}

/// A process that is awake would begin the turn by itself.
#[test]
fn an_agent_that_is_awake_begins_no_turn_either() {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    daemon.start_daemon();
    daemon.create("coder");
    daemon.completed("coder", "do: say first");
    until("a process", || daemon.pid("coder"));
    ok(&daemon.cli(&["daemon", "drain"]));
    let sent = waits(&daemon, "coder", "draining");
    assert_eq!(daemon.count("coder", Kind::TurnStarted), 1);
    // A new daemon does not drain.
    daemon.kill_daemon();
    daemon.start_daemon();
    completes(&daemon, "coder", sent.prompt);
    assert_eq!(daemon.count("coder", Kind::TurnStarted), 2);
    daemon.verify();
}

/// Regression: an agent whose turn had to wait got no process, so the ends of its tasks were not recorded.
#[test]
fn the_end_of_a_task_is_recorded_while_the_next_turn_waits() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let mut task = gate();
    task["run_in_background"] = true.into();
    daemon.completed("coder", &format!("do: call shell {task} ;; say left"));
    ok(&daemon.cli(&["daemon", "drain"]));
    let sent = waits(&daemon, "coder", "draining");
    fs::write(daemon.work().join("go"), "").unwrap();
    daemon.until_kind("coder", Kind::TaskEnded);
    assert_eq!(daemon.count("coder", Kind::TurnStarted), 1);
    ok(&daemon.cli(&["daemon", "drain", "--off"]));
    completes(&daemon, "coder", sent.prompt);
    assert_eq!(daemon.count("coder", Kind::TurnStarted), 2);
    daemon.verify();
}

#[test]
fn a_drain_that_takes_too_long_says_so() {
    let daemon = busy("");
    for timeout in ["0", "0s", "1ms"] {
        let output = daemon.cli(&["daemon", "drain", "--timeout", timeout]);
        assert_eq!(output.status.code(), Some(124), "{output:?}");
    }
}

#[test]
fn a_turn_beyond_the_limit_waits_until_the_limit_is_raised() {
    let daemon = busy("[daemon]\nmax_turns = 1\n");
    let sent = waits(&daemon, "next", "daemon.max_turns");
    config(&daemon, "[daemon]\nmax_turns = many\n");
    let refused = daemon.cli(&["daemon", "reload"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("config.toml"), "{text}");
    assert_eq!(daemon.count("next", Kind::TurnStarted), 0);
    config(&daemon, "[daemon]\nmax_turns = 2\n");
    ok(&daemon.cli(&["daemon", "reload"]));
    completes(&daemon, "next", sent.prompt);
}

/// Regression: the command said that the settings were read, and no notification was sent.
#[test]
fn a_reload_names_the_settings_that_need_a_restart() {
    let daemon = TestDaemon::new();
    let before = daemon.home().join("config.toml");
    let before = fs::read_to_string(before).unwrap_or_default();
    let said = ok(&daemon.cli(&["daemon", "reload"]));
    assert_eq!(said, "the daemon has read its settings again\n");
    config(&daemon, &format!("{before}\n[notify]\ndesktop = true\n"));
    let said = ok(&daemon.cli(&["daemon", "reload"]));
    assert!(
        said.contains("until the daemon is restarted: notify\n"),
        "{said}"
    );
    let status = ok(&daemon.cli(&["daemon", "status", "--json"]));
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["needs_restart"], serde_json::json!(["notify"]));
    config(&daemon, &before);
    let said = ok(&daemon.cli(&["daemon", "reload"]));
    assert_eq!(said, "the daemon has read its settings again\n");
}

#[test]
fn a_turn_beyond_the_limit_begins_when_another_one_ends() {
    let daemon = busy("[daemon]\nmax_turns = 1\n");
    let sent = waits(&daemon, "next", "daemon.max_turns");
    ok(&daemon.cli(&["interrupt", "busy"]));
    completes(&daemon, "next", sent.prompt);
    daemon.verify();
}

/// Regression: an agent with a queue took the free place again and again, and other agents waited without end.
#[test]
fn the_next_prompt_of_a_busy_agent_does_not_overtake_a_turn_that_waits() {
    let daemon = busy("[daemon]\nmax_turns = 1\n");
    let queued = daemon.send("busy", "do: say done");
    let waiting = waits(&daemon, "next", "daemon.max_turns");
    ok(&daemon.cli(&["interrupt", "busy"]));
    completes(&daemon, "busy", queued.prompt);
    completes(&daemon, "next", waiting.prompt);
    let last = |name: &str, kind: Kind| {
        let mut events = daemon.events(name).into_iter().rev();
        events.find(|event| event.kind() == kind).unwrap().at
    };
    let (ended, began) = (
        last("next", Kind::TurnEnded),
        last("busy", Kind::TurnStarted),
    );
    assert!(ended <= began, "{ended:?} {began:?}");
    daemon.verify();
}

/// Regression: the request was dropped, and nothing said why.
#[test]
fn a_turn_that_may_not_begin_is_not_continued_and_the_user_learns_why() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.limits.turn.wall_ms = Some(1_500);
    daemon.create_with("coder", spec);
    let sleeps = r#"do: call shell {"command": "exec sleep 1000"} ;; say done"#;
    assert_eq!(daemon.ask("coder", sleeps).status, Status::Limited);
    ok(&daemon.cli(&["set", "coder", "limits.turn.wall_ms=60000"]));
    ok(&daemon.cli(&["daemon", "drain"]));
    let refused = daemon.cli(&["continue", "coder"]);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("cannot continue now"), "{text}");
    assert!(text.contains("agentd daemon drain --off"), "{text}");
    assert_eq!(daemon.count("coder", Kind::TurnStarted), 1);
    // Nothing waits in its place.
    let status = ok(&daemon.cli(&["daemon", "status"]));
    assert!(status.contains("draining: 0 running"), "{status}");
    assert!(!status.contains("waiting"), "{status}");
    ok(&daemon.cli(&["daemon", "drain", "--off"]));
    ok(&daemon.cli(&["continue", "coder"]));
    until("the end of the turn", || {
        let last = daemon.show("coder").last_turn?;
        (last.status == agentd_core::event::TurnStatus::Completed).then_some(())
    });
    daemon.verify();
}

#[test]
fn a_turn_waits_for_disk_space() {
    let daemon = TestDaemon::empty();
    config(&daemon, "[daemon]\nmin_free_mb = 1000000000\n");
    daemon.start_daemon();
    daemon.create("coder");
    let sent = waits(&daemon, "coder", "daemon.min_free_mb");
    assert_eq!(daemon.count("coder", Kind::TurnStarted), 0);
    config(&daemon, "");
    ok(&daemon.cli(&["daemon", "reload"]));
    completes(&daemon, "coder", sent.prompt);
}

/// Regression: nothing said why the command did not return.
#[test]
fn a_command_that_waits_for_an_answer_says_why_the_turn_cannot_begin() {
    let daemon = TestDaemon::empty();
    config(&daemon, "[daemon]\nmin_free_mb = 1000000000\n");
    daemon.start_daemon();
    daemon.create("coder");
    let mut send = daemon.command();
    send.envs(daemon.caller())
        .args(["send", "coder", "do: say done"]);
    send.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut send = send.spawn().unwrap();
    let mut line = String::new();
    let mut told = BufReader::new(send.stderr.take().unwrap());
    told.read_line(&mut line).unwrap();
    assert!(line.contains("coder: its turn waits"), "{line}");
    assert!(line.contains("daemon.min_free_mb"), "{line}");
    config(&daemon, "");
    ok(&daemon.cli(&["daemon", "reload"]));
    let mut rest = String::new();
    told.read_to_string(&mut rest).unwrap();
    assert_eq!(ok(&send.wait_with_output().unwrap()), "done\n", "{rest}");
    assert!(!rest.contains("waits"), "it is said once: {rest}");
}

#[test]
fn a_turn_waits_when_the_money_of_the_day_is_spent() {
    let price = "[models.some-model]\nwindow = 100000\ninput_usd = 1000\noutput_usd = 1000\n";
    let daemon = TestDaemon::empty();
    config(
        &daemon,
        &format!("{price}[daemon]\nday = {{ usd = 0.000001 }}\n"),
    );
    daemon.start_daemon();
    for name in ["first", "second"] {
        daemon.create(name);
    }
    daemon.completed("first", "do: say first");
    // The limit is that of all agents together.
    let sent = waits(&daemon, "second", "daemon.day.usd");
    config(&daemon, price);
    ok(&daemon.cli(&["daemon", "reload"]));
    completes(&daemon, "second", sent.prompt);
}

/// Everything is killed, as at a reboot. The new daemon takes up the turn and the queue, and no client asks it to.
#[test]
fn a_daemon_resumes_turns_and_queues_without_a_client() {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    daemon.start_daemon();
    daemon.create("coder");
    let words = "word ".repeat(40);
    let first = daemon.send("coder", &format!("do: slowly 25 {words}"));
    daemon.until_kind("coder", Kind::RequestSent);
    let call = serde_json::json!({ "command": "echo queued >> effects" });
    let second = daemon.send("coder", &format!("do: call shell {call} ;; say done"));
    let runtime = Identity::of(until("a process", || daemon.pid("coder"))).unwrap();
    daemon.kill_daemon();
    let _sent = agentd_process::signal(runtime, Signal::KILL).unwrap();
    daemon.start_daemon();
    // The tool of the queued prompt comes last: nothing was asked of the daemon meanwhile.
    until("the effect of the queued prompt", || {
        (daemon.effects() == ["queued"]).then_some(())
    });
    for prompt in [first.prompt, second.prompt] {
        let answer = daemon.answer("coder", prompt);
        assert_eq!(answer.status, Status::Completed, "{answer:#?}");
    }
    daemon.requests();
    daemon.verify();
}

/// A new daemon runs beside the processes of an old build, until their turns end.
#[test]
fn an_idle_process_of_another_build_is_replaced() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say first");
    let old = until("a process", || daemon.pid("coder"));
    daemon.signal_daemon(Signal::TERM);
    daemon.replace_program();
    daemon.start_daemon();
    until("the end of the old process", || {
        (daemon.pid("coder") != Some(old)).then_some(())
    });
    daemon.completed("coder", "do: say second");
    assert_ne!(daemon.pid("coder"), Some(old));
    daemon.verify();
}
