//! Tests with real processes.

use crate::children;
use crate::stat::{self, Stat};
use crate::{
    Child, Delivery, Error, Exit, Identity, Ownership, Signal, Start, signal, signal_group,
};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);

fn shell(script: &str) -> Start {
    let mut start = Start::new("/bin/sh");
    start.args = vec!["-c".into(), script.into()];
    start.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    start.stdout = Stdio::piped();
    start
}

/// A process that does nothing until its stdin is closed.
fn idle() -> Child {
    let mut start = shell("read -r line");
    start.stdin = Stdio::piped();
    start.spawn().unwrap()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what}: never");
        // tidy: polls, another process has no other way to tell
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn output(child: &mut Child) -> String {
    let mut text = String::new();
    let mut stdout = child.take_stdout().unwrap();
    stdout.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn we_are_alive_and_always_the_same() {
    let me = Identity::current().unwrap();
    assert_eq!(me.pid, std::process::id());
    assert_eq!(me, Identity::of(me.pid).unwrap());
    assert!(me.is_alive().unwrap());
}

#[test]
fn a_program_has_what_it_is_given_for_itself() {
    let us = stat::read(std::process::id()).unwrap().unwrap();
    for own in [Ownership::Group, Ownership::Session, Ownership::Nothing] {
        let mut start = shell("read -r line");
        start.stdin = Stdio::piped();
        start.own = own;
        let mut child = start.spawn().unwrap();
        let pid = child.identity().pid;
        let found = stat::read(pid).unwrap().unwrap();
        let expected = match own {
            Ownership::Group => (pid, us.session),
            Ownership::Session => (pid, pid),
            Ownership::Nothing => (us.group, us.session),
        };
        assert_eq!((found.group, found.session), expected, "{own:?}");
        drop(child.take_stdin());
        child.wait().unwrap();
    }
}

#[test]
fn another_start_time_is_another_process() {
    let me = Identity::current().unwrap();
    let before = Identity {
        start_ticks: me.start_ticks - 1,
        ..me
    };
    assert!(!before.is_alive().unwrap());
}

#[test]
fn a_pid_that_nobody_has_is_an_error_that_says_so() {
    let error = Identity::of(u32::MAX).unwrap_err();
    assert!(
        matches!(error, Error::NoSuchProcess { pid: u32::MAX }),
        "{error}"
    );
}

#[test]
fn a_zombie_is_not_alive() {
    let mut child = shell("exit 7").spawn().unwrap();
    let identity = child.identity();
    wait_until("a zombie", || {
        let stat = identity.look().unwrap();
        stat.is_some_and(|stat| stat.state == 'Z')
    });
    assert!(!identity.is_alive().unwrap());
    assert_eq!(signal(identity, Signal::KILL).unwrap(), Delivery::Gone);
    assert_eq!(child.wait().unwrap(), Exit::Code(7));
    assert_eq!(identity.look().unwrap(), None);
}

#[test]
fn a_signal_reaches_the_process_and_its_end_is_told() {
    let mut child = idle();
    assert!(child.identity().is_alive().unwrap());
    assert_eq!(child.try_wait().unwrap(), None);
    let delivery = signal(child.identity(), Signal::KILL).unwrap();
    assert_eq!(delivery, Delivery::Sent);
    let exit = Exit::Signal(Signal::KILL.as_raw());
    assert_eq!(child.wait().unwrap(), exit);
    // Later calls return the same exit.
    assert_eq!(child.try_wait().unwrap(), Some(exit));
    let again = signal(child.identity(), Signal::KILL).unwrap();
    assert_eq!(again, Delivery::Gone);
}

// pitchfork#633, #887: a pid file outlives its process, and its pid is given to another process.
#[test]
fn whoever_has_the_pid_now_is_left_alone() {
    let mut child = idle();
    let stranger = Identity {
        start_ticks: child.identity().start_ticks + 1,
        ..child.identity()
    };
    let delivery = signal(stranger, Signal::KILL).unwrap();
    assert_eq!(delivery, Delivery::Gone);
    let delivery = signal_group(stranger, Signal::KILL).unwrap();
    assert_eq!(delivery, Delivery::Gone);
    // A signal would have ended the process before the end of its input did.
    drop(child.take_stdin());
    assert_eq!(child.wait().unwrap(), Exit::Code(1));
}

// process-compose#149: children survive the stop of their parent.
#[test]
fn a_group_ends_with_what_it_started() {
    let mut child = shell("sleep 600 & echo $!; wait").spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.take_stdout().unwrap());
    stdout.read_line(&mut line).unwrap();
    let grandchild = Identity::of(line.trim().parse().unwrap()).unwrap();
    assert!(grandchild.is_alive().unwrap());

    let delivery = signal_group(child.identity(), Signal::KILL).unwrap();
    assert_eq!(delivery, Delivery::Sent);
    let exit = child.wait().unwrap();
    assert_eq!(exit, Exit::Signal(Signal::KILL.as_raw()));
    wait_until("the grandchild ends", || !grandchild.is_alive().unwrap());
    assert!(Identity::current().unwrap().is_alive().unwrap());
}

#[test]
fn a_group_can_be_ended_while_its_leader_is_a_zombie() {
    let mut child = shell("sleep 600 & echo $!").spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.take_stdout().unwrap());
    stdout.read_line(&mut line).unwrap();
    let grandchild = Identity::of(line.trim().parse().unwrap()).unwrap();
    let leader = child.identity();
    wait_until("the leader ends", || !leader.is_alive().unwrap());

    let delivery = signal_group(leader, Signal::KILL).unwrap();
    assert_eq!(delivery, Delivery::Sent);
    wait_until("the grandchild ends", || !grandchild.is_alive().unwrap());
    assert_eq!(child.wait().unwrap(), Exit::Code(0));
    // The leader is reaped and its pid is free, so the group can no longer be identified.
    let again = signal_group(leader, Signal::KILL).unwrap();
    assert_eq!(again, Delivery::Gone);
}

#[test]
fn a_child_gets_what_it_is_given_and_no_more() {
    let mut start = shell("echo \"$PWD:$GIVEN:${HOME-none}\"; cat");
    start.env.push(("GIVEN".into(), "yes".into()));
    start.cwd = Some("/".into());
    let mut child = start.spawn().unwrap();
    assert_eq!(output(&mut child), "/:yes:none\n");
    assert_eq!(child.wait().unwrap(), Exit::Code(0));
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let error = Start::new("/nowhere/at/all").spawn().unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("cannot start /nowhere/at/all: "), "{text}");
}

#[test]
fn the_name_of_a_program_confuses_nobody() {
    let rest = "S 1 12 11 0 -1 4194304 102 0 0 0 0 0 0 0 20 0 1 0 34567 3133440 387";
    let expected = Some(Stat {
        state: 'S',
        parent: 1,
        group: 12,
        session: 11,
        start_ticks: 34567,
    });
    for name in ["sh", "a b", "a) Z 1 (b", "((", ")"] {
        let line = format!("12 ({name}) {rest}\n");
        assert_eq!(stat::parse(&line), expected, "{line}");
    }
    assert_eq!(stat::parse(""), None);
    assert_eq!(stat::parse("12 (sh"), None);
    assert_eq!(stat::parse("12 (sh) S 1 2"), None);
    assert_eq!(stat::parse("12 (sh) SS 1 2 3"), None);
}

#[test]
fn a_reaped_child_is_not_listed_and_its_reused_pid_is_not_its_own() {
    let is_listed = |pid| children::with(|is_listed| is_listed(pid));
    let mut child = idle();
    let pid = child.identity().pid;
    assert_eq!(child.try_wait().unwrap(), None);
    assert!(is_listed(pid));
    drop(child.take_stdin());
    let ended = std::cell::Cell::new(None);
    let child = std::cell::RefCell::new(child);
    wait_until("the end", || {
        ended.set(child.borrow_mut().try_wait().unwrap());
        ended.get().is_some()
    });
    assert!(!is_listed(pid));
    // Another child gets the pid.
    children::insert(pid);
    let mut child = child.into_inner();
    assert_eq!(Some(child.wait().unwrap()), ended.get());
    assert_eq!(child.try_wait().unwrap(), ended.get());
    drop(child);
    assert!(is_listed(pid));
    children::on_exit(pid, || {});
}

#[test]
fn a_child_that_no_code_waits_for_is_killed_and_reaped() {
    let mut command = std::process::Command::new("/bin/sh");
    let child = children::spawn(command.args(["-c", "exec sleep 600"])).unwrap();
    let pid = child.id();
    children::end(child);
    assert_eq!(stat::read(pid).unwrap(), None);
    assert!(!children::with(|is_listed| is_listed(pid)));
}
