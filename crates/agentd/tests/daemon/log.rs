//! A log that cannot be written, and tasks of the daemon that panic: agents continue unaffected.

use crate::test_daemon::{KEY, TestDaemon, until};
use agentd_client::Error;
use agentd_client::api::{Send, Status};
use agentd_core::event::Kind;
use agentd_failpoint::plan::{Action, Role, Rule};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

/// The process of this role panics when it passes the failpoint for the nth time, once in total.
fn panic_at(daemon: &TestDaemon, role: Role, point: &str, nth: u32) {
    let rule = Rule {
        nth: Some(nth),
        action: Action::Panic,
        ..Rule::hold("rule", role, point)
    };
    daemon.follow(rule);
}

/// Makes a task that serves a connection write a log line.
fn say_nonsense(daemon: &TestDaemon) {
    let mut link = UnixStream::connect(daemon.home().join("run/link.sock")).unwrap();
    link.write_all(b"nonsense\0").unwrap();
    // It hangs up once it has said so.
    let mut rest = Vec::new();
    let _reset = link.read_to_end(&mut rest);
}

/// Regression: on a full disk the logger fell back to `eprintln!`, which panicked. The tasks that served runtimes died,
/// and turns never ended.
#[test]
fn a_log_on_a_full_disk_ends_nothing() {
    let daemon = TestDaemon::empty();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    daemon.start_daemon_with(full(), full());
    daemon.create("coder");
    say_nonsense(&daemon);
    assert_eq!(daemon.completed("coder", "do: say hello").text, "hello");
    daemon.kill_runtime("coder");
    say_nonsense(&daemon);
    assert_eq!(daemon.completed("coder", "do: say again").text, "again");
    let sent = daemon.send("coder", &format!("do: slowly 100 {}", "word ".repeat(500)));
    // Two earlier turns have sent one each.
    let is_sent = || (daemon.count("coder", Kind::RequestSent) == 3).then_some(());
    until("the request of the third turn", is_sent);
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted);
}

/// A write to a full pipe blocks until the pipe is read.
#[test]
fn a_log_that_nobody_reads_holds_nobody_up() {
    let daemon = TestDaemon::empty();
    let (unread, log) = std::io::pipe().unwrap();
    daemon.start_daemon_with(File::create("/dev/null").unwrap(), log);
    daemon.create("coder");
    // A pipe holds 64 KiB.
    for _ in 0..1500 {
        say_nonsense(&daemon);
    }
    assert_eq!(daemon.completed("coder", "do: say hello").text, "hello");
    drop(unread);
    assert_eq!(daemon.completed("coder", "do: say again").text, "again");
}

/// Regression: the connection stayed open, and the runtime waited for its answer without end.
#[test]
fn a_connection_whose_task_dies_is_closed_and_the_turn_goes_on() {
    for point in ["on-receive.append", "at-barrier.4", "before-send.appended"] {
        let daemon = TestDaemon::empty();
        panic_at(&daemon, Role::Daemon, point, 2);
        daemon.start_daemon();
        daemon.create("coder");
        let text = format!("do: slowly 5 {} ;; say done", "word ".repeat(40));
        assert_eq!(daemon.completed("coder", &text).status, Status::Completed);
        let log = daemon.log();
        assert!(log.contains("daemon task panicked"), "{point}: {log}");
        assert!(log.contains("the lab's, at "), "{point}: {log}");
    }
}

#[test]
fn a_start_that_dies_is_made_again() {
    let daemon = TestDaemon::empty();
    panic_at(&daemon, Role::Daemon, "before-spawn", 1);
    daemon.start_daemon();
    daemon.create("coder");
    assert_eq!(daemon.completed("coder", "do: say hello").text, "hello");
    assert!(
        daemon.log().contains("task=\"runtime start\""),
        "{}",
        daemon.log()
    );
}

#[test]
fn a_request_whose_handler_dies_is_answered() {
    let daemon = TestDaemon::empty();
    panic_at(&daemon, Role::Daemon, "on-request.prompts", 1);
    daemon.start_daemon();
    daemon.create("coder");
    let send = Send {
        text: "do: say hello".to_owned(),
        env: daemon.caller(),
        ..Send::default()
    };
    let refused = daemon.block(daemon.client().send("coder", &send));
    let Err(Error::Problem(problem)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(problem.kind, agentd_client::Kind::Internal);
    assert_eq!(daemon.completed("coder", "do: say hello").text, "hello");
}

#[test]
fn a_runtime_that_panics_is_replaced_and_its_log_is_kept() {
    let daemon = TestDaemon::empty();
    panic_at(&daemon, Role::Runtime, "before-message", 1);
    daemon.start_daemon();
    let agent = daemon.create("coder");
    assert_eq!(daemon.completed("coder", "do: say hello").text, "hello");
    let dir = daemon.home().join("agents").join(agent.id.to_string());
    let old = fs::read_to_string(dir.join("runtime.log.1")).unwrap();
    assert!(old.contains("panicked at"), "{old}");
    let shown = daemon.cli(&["logs", "coder", "--process"]);
    assert!(shown.status.success(), "{shown:?}");
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("panicked at"), "{shown}");
}

#[test]
fn the_log_of_a_process_is_shown_without_keys_and_no_link_is_followed() {
    let daemon = TestDaemon::new();
    let agent = daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    let dir = daemon.home().join("agents").join(agent.id.to_string());
    let mut log = File::options()
        .append(true)
        .open(dir.join("runtime.log"))
        .unwrap();
    log.write_all(format!("the key is {KEY}\n").as_bytes())
        .unwrap();
    let show = || {
        let shown = daemon.cli(&["logs", "coder", "--process"]);
        String::from_utf8(shown.stdout).unwrap()
    };
    let shown = show();
    assert!(shown.contains("the key is "), "{shown}");
    assert!(!shown.contains(KEY), "{shown}");
    let secret = daemon.root().join("secret");
    fs::write(&secret, "of the user").unwrap();
    std::os::unix::fs::symlink(&secret, dir.join("runtime.log.1")).unwrap();
    let shown = show();
    assert!(!shown.contains("of the user"), "{shown}");
}

/// With the id of the turn, so that lines about it can be found.
#[test]
fn the_log_says_when_turns_begin_and_end() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    let turn = daemon.show("coder").last_turn.unwrap().id;
    for what in ["turn began", "turn ended"] {
        until(what, || {
            let log = daemon.program().log();
            let mut lines = log.lines();
            let is_it = |line: &str| line.contains(what) && line.contains(&format!("turn={turn}"));
            lines.any(is_it).then_some(())
        });
    }
}

#[test]
fn the_log_of_a_daemon_is_kept_below_its_limit_while_it_runs() {
    const LIMIT: u64 = 10 * 1024 * 1024;
    let daemon = TestDaemon::empty();
    let path = daemon.home().join("daemon.log");
    File::create(&path).unwrap().set_len(LIMIT - 10).unwrap();
    let started = daemon.cli(&["daemon", "start"]);
    assert_eq!(started.status.code(), Some(0), "{started:?}");
    // What it says at its start does not fit any more.
    let old = daemon.home().join("daemon.log.1");
    let length = |path| fs::metadata(path).map_or(0, |log| log.len());
    until("another log", || (length(&old) > LIMIT - 10).then_some(()));
    say_nonsense(&daemon);
    until("a line in it", || {
        let log = fs::read_to_string(&path).ok()?;
        log.contains("cannot be parsed").then_some(())
    });
    assert!(length(&path) < 4096);
    daemon.cli(&["daemon", "stop"]);
}
