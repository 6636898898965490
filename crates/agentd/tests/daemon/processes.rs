//! Processes that do not behave: they are ended, reaped and bounded, and no stranger is touched.

use crate::house::{House, kill, reap, until};
use agentd_client::api::{ProcessState, Reset, Status, Stop};
use agentd_client::{Error, Kind as ProblemKind};
use agentd_core::event::Kind;
use agentd_core::state::Phase;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn shell(command: &str) -> String {
    format!("call shell {}", serde_json::json!({ "command": command }))
}

fn stop(house: &House, grace_ms: u64) {
    let stop = Stop {
        kill_background: true,
        grace_ms: Some(grace_ms),
    };
    house.block(house.client().stop("coder", &stop)).unwrap();
}

/// Nobody is left but the daemon itself.
fn nobody_is_left(house: &House) {
    let daemon = house.daemon_pid();
    until("everybody's end", || {
        let left = house.processes().into_iter();
        let mut left = left.filter(|(pid, _)| Some(*pid) != daemon);
        left.next().is_none().then_some(())
    });
    // What has ended has been reaped, too.
    let daemon = daemon.unwrap();
    until("no zombie", || {
        let children = format!("/proc/{daemon}/task/{daemon}/children");
        let children = fs::read_to_string(children).unwrap_or_default();
        children.trim().is_empty().then_some(())
    });
}

/// claude-code#27959, codex#30408: 1,300 zombies and 37 GB of what nobody owned.
#[test]
fn a_tool_that_ignores_term_forks_twice_and_closes_everything_is_ended() {
    let house = House::new();
    house.create("coder");
    let wild = "trap '' TERM INT HUP; echo on >> effects; \
                (setsid sh -c \"trap '' TERM; exec 0<&- 1>&- 2>&-; sleep 300\" & ) ; \
                (sleep 300 &) ; sleep 300";
    let sent = house.send("coder", &format!("do: {} ;; say done", shell(wild)));
    until("the tool", || (house.effects().len() == 1).then_some(()));
    stop(&house, 15_000);
    assert_eq!(
        house.answer("coder", sent.prompt).status,
        Status::Interrupted
    );
    nobody_is_left(&house);
}

#[test]
fn a_tool_that_floods_its_output_is_bounded() {
    let house = House::new();
    house.create("coder");
    let flood = "seq 1 6000000";
    let answer = house.completed("coder", &format!("do: {} ;; say done", shell(flood)));
    assert_eq!(answer.text, "done");
    let requests = house.requests();
    let size = requests.last().unwrap().body.to_string().len();
    assert!(size < 1_000_000, "{size} bytes were sent");
    stop(&house, 5000);
    nobody_is_left(&house);
}

/// A runtime that hangs hears neither order nor signal.
#[test]
fn a_runtime_that_ignores_everything_is_killed() {
    let house = House::empty();
    house.hold_runtime("before-message");
    house.start_daemon();
    house.create("coder");
    let sent = house.send("coder", "do: say hello");
    house.until_held();
    let pid = until("a process", || house.pid("coder"));
    // A reset leaves everything as it was, and says what to do.
    let ask = Reset {
        grace_ms: Some(200),
        ..Reset::default()
    };
    let before = house.show("coder").generation;
    let refused = house.block(house.client().reset("coder", &ask));
    let Err(Error::Problem(problem)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(problem.kind, ProblemKind::Unavailable);
    assert!(problem.title.contains("still active"), "{problem:#?}");
    assert!(problem.next.unwrap().contains("--force"));
    assert_eq!(house.show("coder").generation, before);
    // By force it goes.
    let ask = Reset { force: true, ..ask };
    house.block(house.client().reset("coder", &ask)).unwrap();
    assert_eq!(house.show("coder").generation, before + 1);
    assert_ne!(house.pid("coder"), Some(pid));
    assert_eq!(
        house.answer("coder", sent.prompt).status,
        Status::Interrupted
    );
    stop(&house, 5000);
    nobody_is_left(&house);
}

/// It hears no signal, fills its output, has let go of its descriptors, and leaves behind somebody who
/// has left its group, its session and its parents.
#[test]
fn a_runtime_that_does_all_that_one_should_not_is_ended_with_what_it_left() {
    let house = House::empty();
    let program = house.home().join("wild");
    let left = house.home().join("left");
    let script = format!(
        "#!/bin/sh\ntrap '' TERM INT HUP\nyes flood &\n\
         (setsid sh -c \"trap '' TERM; echo \\$\\$ > '{0}.new'; mv '{0}.new' '{0}'; exec sleep 300\" &)\n\
         exec 0<&- 1>&- 2>&-\nwhile :; do sleep 300; done\n",
        left.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    house.daemon_args(&["--runtime-program", program.to_str().unwrap()]);
    house.start_daemon();
    house.create("coder");
    house.send("coder", "do: say hello");
    let orphan: u32 = until("what it leaves behind", || {
        fs::read_to_string(&left).ok()?.trim().parse().ok()
    });
    let pid = until("a process", || house.pid("coder"));
    stop(&house, 200);
    let agent = house.show("coder");
    assert_eq!((agent.process.pid, agent.phase), (None, Phase::Stopped));
    for pid in [pid, orphan] {
        until("its end", || {
            (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())
        });
    }
    nobody_is_left(&house);
}

#[test]
fn what_lost_its_runtime_is_reaped_when_it_ends() {
    let house = House::new();
    house.create("coder");
    let call = serde_json::json!({ "command": "sleep 1", "run_in_background": true });
    house.completed("coder", &format!("do: call shell {call} ;; say started"));
    house.kill_runtime("coder");
    // The next process hears of the end, and tells the model.
    house.completed("coder", "do: say again");
    house.until_kind("coder", Kind::TaskEnded);
    stop(&house, 5000);
    nobody_is_left(&house);
}

#[test]
fn a_runtime_whose_home_is_gone_ends_itself() {
    let house = House::new();
    house.create("coder");
    house.completed("coder", "do: say hello");
    let pid = until("a process", || house.pid("coder"));
    house.kill_daemon();
    fs::remove_dir_all(house.home().join("run")).unwrap();
    until("its end", || {
        reap(pid);
        (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
}

/// A daemon was killed, and the next one stopped before an agent's process had come back to it: that process
/// went on, with nobody to look after it.
#[test]
fn a_daemon_that_is_stopped_at_once_ends_the_processes_of_the_one_before() {
    let house = House::new();
    house.create("coder");
    for _ in 0..3 {
        house.completed("coder", "do: say hello");
        let pid = until("a process", || house.pid("coder"));
        house.kill_daemon();
        house.start_daemon();
        let stopped = house.cli(&["daemon", "stop"]);
        assert!(stopped.status.success(), "{stopped:?}");
        until("its end", || {
            reap(pid);
            (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())
        });
        house.start_daemon();
    }
}

/// One that dies at every start is started more and more rarely, and then no more.
#[test]
fn a_crash_loop_ends_as_failed_with_the_last_error() {
    let house = House::new();
    house.create("coder");
    let config = house.home().join("config.toml");
    fs::create_dir(&config).unwrap();
    let sent = house.send("coder", "do: say hello");
    let agent = until("failure", || {
        let agent = house.show("coder");
        (agent.phase == Phase::Failed).then_some(agent)
    });
    let error = agent.error.unwrap();
    assert!(error.contains("config.toml cannot be read"), "{error}");
    assert_eq!(agent.process.pid, None);
    assert_eq!(house.model.requests().len(), 0);
    fs::remove_dir(&config).unwrap();
    let start = agentd_client::api::Start::default();
    house.block(house.client().start("coder", &start)).unwrap();
    assert_eq!(house.answer("coder", sent.prompt).text, "hello");
}

#[test]
fn an_agent_that_cannot_work_fails_with_the_reason() {
    let house = House::new();
    let mut spec = house.spec();
    spec.cwd = Some(house.work().join("gone").display().to_string());
    house.create_with("coder", spec);
    let sent = house.send("coder", "do: say hello");
    let agent = until("failure", || {
        let agent = house.show("coder");
        (agent.phase == Phase::Failed).then_some(agent)
    });
    assert!(agent.error.unwrap().contains("gone is no folder"));
    fs::create_dir(house.work().join("gone")).unwrap();
    let start = agentd_client::api::Start::default();
    house.block(house.client().start("coder", &start)).unwrap();
    assert_eq!(house.answer("coder", sent.prompt).text, "hello");
}

/// claude-code#39151, goose#12321: two writers in one conversation.
#[test]
fn a_second_daemon_is_refused() {
    let house = House::new();
    let second = house.command().args(["daemon", "run"]).output().unwrap();
    assert_eq!(second.status.code(), Some(3));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("another daemon runs"), "{said}");
    let pid = house.daemon_pid().unwrap();
    assert_eq!(house.block(house.client().daemon()).unwrap().pid, pid);
    kill(pid, Signal::HUP);
    assert_eq!(house.block(house.client().daemon()).unwrap().pid, pid);
}

/// A tool is run as the user, and can reach the socket: it may ask, and may not free itself.
#[test]
fn a_tool_may_not_approve_reset_or_configure() {
    let house = House::new();
    house.create("coder");
    house.create("other");
    house.completed("other", "do: say hello");
    let agentd = env!("CARGO_BIN_EXE_agentd");
    let home = house.home().display().to_string();
    let calls = [
        format!("AGENTD_HOME={home} {agentd} reset other 2>&1"),
        format!("AGENTD_HOME={home} {agentd} rename other mine 2>&1"),
        // One that has left its session and its parents.
        format!("AGENTD_HOME={home} setsid sh -c '{agentd} reset other' 2>&1"),
    ];
    for call in calls {
        let answer = house.completed("coder", &format!("do: {} ;; say tried", shell(&call)));
        assert_eq!(answer.text, "tried");
        let request = house.requests().last().unwrap().body.to_string();
        assert!(request.contains("tools may not do that"), "{request}");
    }
    assert_eq!(house.show("other").generation, 1);
    // To look at its own agent is allowed.
    let show = format!("AGENTD_HOME={home} {agentd} show coder");
    house.completed("coder", &format!("do: {} ;; say shown", shell(&show)));
    let request = house.requests().last().unwrap().body.to_string();
    assert!(request.contains("persistent"), "{request}");
}

/// Limits of the spec hold for what tools start: by the cgroup where there is one, by rlimit otherwise.
#[test]
fn a_command_is_kept_within_its_limits() {
    let house = House::new();
    let mut spec = house.spec();
    spec.limits.task_open_files = Some(17);
    spec.limits.task_memory_bytes = Some(64 * 1024 * 1024);
    house.create_with("coder", spec);
    let call = shell(
        "ulimit -n; head -c 300000000 /dev/zero > /dev/null; x=$(head -c 300000000 /dev/zero); echo survived",
    );
    house.completed("coder", &format!("do: {call} ;; say done"));
    let request = house.requests().last().unwrap().body.to_string();
    assert!(request.contains("17"), "{request}");
    let of_result = request.rsplit("tool_result").next().unwrap();
    assert!(!of_result.contains("survived"), "{of_result}");
}

/// An agent whose process was about to be started again was shown as `up`, with no pid.
#[test]
fn a_process_that_is_not_there_is_not_shown_as_up() {
    let house = House::empty();
    let program = house.root().join("gone");
    house.daemon_args(&["--runtime-program", program.to_str().unwrap()]);
    house.start_daemon();
    house.create("coder");
    house.send("coder", "do: say hello");
    until("the end of all tries", || {
        let agent = house.show("coder");
        assert_ne!(agent.process.state, ProcessState::Up, "{agent:#?}");
        assert_eq!(agent.process.pid, None);
        (agent.phase == Phase::Failed).then_some(())
    });
}
