//! A log that cannot be written, and tasks of the daemon that die: agents go on as if nothing had happened.

use crate::house::{House, until};
use agentd_client::Error;
use agentd_client::api::{Send, Status};
use agentd_core::event::Kind;
use agentd_process::failpoint::VARIABLE;
use agentd_process::failpoint::plan::{Action, Plan, Role, Rule};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

/// The process of this role panics when it passes the point for the nth time, once in all.
fn panic_at(house: &House, role: Role, point: &str, nth: u32) {
    let rule = Rule {
        nth: Some(nth),
        action: Action::Panic,
        ..Rule::hold("rule", role, point)
    };
    let plan = Plan {
        rules: vec![rule],
        ..Plan::default()
    };
    plan.write(&house.root()).unwrap();
    house.daemon_env(VARIABLE, &house.root().display().to_string());
}

/// Something that the daemon logs, from a task that serves a connection.
fn say_nonsense(house: &House) {
    let mut link = UnixStream::connect(house.home().join("run/link.sock")).unwrap();
    link.write_all(b"nonsense\0").unwrap();
    // It hangs up once it has said so.
    let mut rest = Vec::new();
    let _reset = link.read_to_end(&mut rest);
}

/// The disk was full, the logger fell back to `eprintln!`, that panicked, and the tasks that served runtimes died:
/// turns were under way for ever.
#[test]
fn a_log_on_a_full_disk_ends_nothing() {
    let house = House::empty();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    house.start_daemon_with(full(), full());
    house.create("coder");
    say_nonsense(&house);
    assert_eq!(house.completed("coder", "do: say hello").text, "hello");
    house.kill_runtime("coder");
    say_nonsense(&house);
    assert_eq!(house.completed("coder", "do: say again").text, "again");
    let sent = house.send("coder", &format!("do: slowly 100 {}", "word ".repeat(500)));
    house.until_kind("coder", Kind::RequestSent);
    house.block(house.client().interrupt("coder")).unwrap();
    let answer = house.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted);
}

/// A pipe that is full makes a write wait until somebody reads.
#[test]
fn a_log_that_nobody_reads_holds_nobody_up() {
    let house = House::empty();
    let (unread, log) = std::io::pipe().unwrap();
    house.start_daemon_with(File::create("/dev/null").unwrap(), log);
    house.create("coder");
    // A pipe holds 64 KiB.
    for _ in 0..1500 {
        say_nonsense(&house);
    }
    assert_eq!(house.completed("coder", "do: say hello").text, "hello");
    drop(unread);
    assert_eq!(house.completed("coder", "do: say again").text, "again");
}

/// The connection was not closed, and the runtime waited for ever for its answer.
#[test]
fn a_connection_whose_task_dies_is_closed_and_the_turn_goes_on() {
    for point in ["on-receive.append", "at-barrier.4", "before-send.appended"] {
        let house = House::empty();
        panic_at(&house, Role::Daemon, point, 2);
        house.start_daemon();
        house.create("coder");
        let text = format!("do: slowly 5 {} ;; say done", "word ".repeat(40));
        assert_eq!(house.completed("coder", &text).status, Status::Completed);
        let log = house.log();
        assert!(log.contains("a task of the daemon died"), "{point}: {log}");
        assert!(log.contains("the lab's, at "), "{point}: {log}");
    }
}

#[test]
fn a_start_that_dies_is_made_again() {
    let house = House::empty();
    panic_at(&house, Role::Daemon, "before-spawn", 1);
    house.start_daemon();
    house.create("coder");
    assert_eq!(house.completed("coder", "do: say hello").text, "hello");
    assert!(house.log().contains("task=\"a start\""), "{}", house.log());
}

#[test]
fn a_request_whose_handler_dies_is_answered() {
    let house = House::empty();
    panic_at(&house, Role::Daemon, "on-request.prompts", 1);
    house.start_daemon();
    house.create("coder");
    let send = Send {
        text: "do: say hello".to_owned(),
        env: house.caller(),
        ..Send::default()
    };
    let refused = house.block(house.client().send("coder", &send));
    let Err(Error::Problem(problem)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(problem.kind, agentd_client::Kind::Internal);
    assert_eq!(house.completed("coder", "do: say hello").text, "hello");
}

#[test]
fn a_runtime_that_panics_is_replaced_and_its_log_is_kept() {
    let house = House::empty();
    panic_at(&house, Role::Runtime, "before-message", 1);
    house.start_daemon();
    let agent = house.create("coder");
    assert_eq!(house.completed("coder", "do: say hello").text, "hello");
    let folder = house.home().join("agents").join(agent.id.to_string());
    let old = fs::read_to_string(folder.join("runtime.log.1")).unwrap();
    assert!(old.contains("panicked at"), "{old}");
}

#[test]
fn the_log_of_a_daemon_is_kept_below_its_limit_while_it_runs() {
    const LIMIT: u64 = 10 * 1024 * 1024;
    let house = House::empty();
    let path = house.home().join("daemon.log");
    File::create(&path).unwrap().set_len(LIMIT - 10).unwrap();
    let started = house.cli(&["daemon", "start"]);
    assert_eq!(started.status.code(), Some(0), "{started:?}");
    // What it says at its start does not fit any more.
    let old = house.home().join("daemon.log.1");
    let length = |path| fs::metadata(path).map_or(0, |log| log.len());
    until("another log", || (length(&old) > LIMIT - 10).then_some(()));
    say_nonsense(&house);
    until("a line in it", || {
        let log = fs::read_to_string(&path).ok()?;
        log.contains("cannot be read").then_some(())
    });
    assert!(length(&path) < 4096);
    house.cli(&["daemon", "stop"]);
}
