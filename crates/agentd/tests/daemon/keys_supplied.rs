//! A command that follows a turn supplies its caller's keys when a new daemon and a new process have none.

use crate::subagents::{go, parent_spec, start, until_begun, until_go};
use crate::test_daemon::{POLL, TestDaemon, kill, until};
use agentd_client::api::List;
use agentd_core::event::TurnStatus;
use agentd_testkit::harness::{Size, Terminal};
use rustix::process::Signal;
use std::process::{Child, Command, Stdio};

/// A prompt whose turn works until the file `go` exists.
fn slow() -> String {
    format!("{} ;; say done", until_go())
}

fn command(daemon: &TestDaemon, args: &[&str]) -> Command {
    let mut command = daemon.command();
    command.envs(daemon.caller()).args(args);
    command
}

fn spawn(daemon: &TestDaemon, args: &[&str]) -> Child {
    let mut command = command(daemon, args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Kills the daemon and all runtimes. The next daemon is started by a command, and neither it nor its runtimes have a key.
fn kill_all(daemon: &TestDaemon) {
    let agents = daemon.block(daemon.client().agents(&List::default()));
    let mut pids = Vec::new();
    for agent in agents.unwrap().agents {
        pids.extend(daemon.pid(&agent.id.to_string()));
    }
    daemon.kill_daemon();
    for pid in pids {
        kill(pid, Signal::KILL);
    }
}

fn check_completed(child: Child) -> String {
    let ended = child.wait_with_output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&ended.stdout).into_owned(),
        String::from_utf8_lossy(&ended.stderr).into_owned(),
    );
    assert_eq!(ended.status.code(), Some(0), "{out}\n{err}");
    out
}

/// Regression: `send` said that the key must be set after daemon and runtime were killed, though its caller has it.
#[test]
fn a_send_that_waits_supplies_the_key_after_a_crash() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let slow = slow();
    let child = spawn(&daemon, &["send", "coder", &slow]);
    until_begun(&daemon);
    kill_all(&daemon);
    go(&daemon);
    assert_eq!(check_completed(child).trim(), "done");
}

/// Regression: `wait` looked for a missing key once, before the new daemon had reached the pause.
#[test]
fn a_wait_supplies_the_key_whenever_the_turn_pauses() {
    for with_prompt in [false, true] {
        let daemon = TestDaemon::new();
        daemon.create("coder");
        let prompt = daemon.send("coder", &slow()).prompt.to_string();
        until_begun(&daemon);
        kill_all(&daemon);
        go(&daemon);
        let mut args = vec!["wait", "coder"];
        args.extend(with_prompt.then_some(prompt.as_str()));
        check_completed(spawn(&daemon, &args));
    }
}

/// Regression: a key that a subagent's turn waits for was not supplied.
#[test]
fn a_send_supplies_the_key_of_a_subagent() {
    let daemon = TestDaemon::new();
    daemon.create_with("coder", parent_spec(&daemon));
    let prompt = format!("do: {} ;; say done", start(&until_go(), false));
    let child = spawn(&daemon, &["send", "coder", &prompt]);
    until_begun(&daemon);
    kill_all(&daemon);
    go(&daemon);
    assert_eq!(check_completed(child).trim(), "done");
}

/// Whether the last turn was completed, also while the next daemon is being started.
fn is_completed(daemon: &TestDaemon) -> Option<()> {
    let agent = daemon.block(daemon.client().agent("coder")).ok()?;
    let status = agent.last_turn?.status;
    (status == TurnStatus::Completed).then_some(())
}

/// Regression: `logs -f` followed a turn that waits for a key which its caller has.
#[test]
fn a_follower_of_the_log_supplies_the_key() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.send("coder", &slow());
    until_begun(&daemon);
    let mut child = spawn(&daemon, &["logs", "coder", "-f"]);
    kill_all(&daemon);
    go(&daemon);
    until("the end of the turn", || is_completed(&daemon));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Regression: the chat supplied keys once, when it began.
#[test]
fn a_chat_supplies_the_key() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.send("coder", &slow());
    until_begun(&daemon);
    let mut chat = command(&daemon, &["chat", "coder"]);
    chat.env("TERM", "xterm-256color");
    let terminal = Terminal::start(chat, Size::new(30, 100)).unwrap();
    let shown = terminal.until(POLL, "the chat", |screen| screen.contains("coder"));
    shown.unwrap();
    kill_all(&daemon);
    go(&daemon);
    until("the end of the turn", || is_completed(&daemon));
    terminal.signal(Signal::TERM).unwrap();
}
