//! Processes that misbehave: they are ended, reaped and limited, and no process of others is signalled.

use crate::test_daemon::{TestDaemon, kill, reap, until};
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

fn stop(daemon: &TestDaemon, grace_ms: u64) {
    let stop = Stop {
        kill_background: true,
        grace_ms: Some(grace_ms),
    };
    daemon.block(daemon.client().stop("coder", &stop)).unwrap();
}

/// Waits until no process is left except the daemon.
fn nobody_is_left(daemon: &TestDaemon) {
    let pid_of_daemon = daemon.daemon_pid();
    until("everybody's end", || {
        let left = daemon.processes().into_iter();
        let mut left = left.filter(|(pid, _)| Some(*pid) != pid_of_daemon);
        left.next().is_none().then_some(())
    });
    // What has ended has been reaped, too.
    let pid = pid_of_daemon.unwrap();
    until("no zombie", || {
        let children = format!("/proc/{pid}/task/{pid}/children");
        let children = fs::read_to_string(children).unwrap_or_default();
        children.trim().is_empty().then_some(())
    });
}

/// claude-code#27959, codex#30408: 1,300 zombies, and 37 GB in processes without an owner.
#[test]
fn a_tool_that_ignores_term_forks_twice_and_closes_everything_is_ended() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let wild = "trap '' TERM INT HUP; echo on >> effects; \
                (setsid sh -c \"trap '' TERM; exec 0<&- 1>&- 2>&-; sleep 300\" & ) ; \
                (sleep 300 &) ; sleep 300";
    let sent = daemon.send("coder", &format!("do: {} ;; say done", shell(wild)));
    until("the tool", || (daemon.effects().len() == 1).then_some(()));
    stop(&daemon, 15_000);
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Interrupted
    );
    nobody_is_left(&daemon);
}

#[test]
fn a_tool_that_floods_its_output_is_bounded() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let flood = "seq 1 6000000";
    let answer = daemon.completed("coder", &format!("do: {} ;; say done", shell(flood)));
    assert_eq!(answer.text, "done");
    let requests = daemon.requests();
    let size = requests.last().unwrap().body.to_string().len();
    assert!(size < 1_000_000, "{size} bytes were sent");
    stop(&daemon, 5000);
    nobody_is_left(&daemon);
}

/// A runtime that hangs reacts neither to orders nor to SIGTERM.
#[test]
fn a_runtime_that_ignores_everything_is_killed() {
    let daemon = TestDaemon::empty();
    daemon.hold_runtime("before-message");
    daemon.start_daemon();
    daemon.create("coder");
    let sent = daemon.send("coder", "do: say hello");
    daemon.until_held();
    let pid = until("a process", || daemon.pid("coder"));
    // A reset leaves everything as it was, and says what to do.
    let ask = Reset {
        grace_ms: Some(200),
        ..Reset::default()
    };
    let before = daemon.show("coder").generation;
    let refused = daemon.block(daemon.client().reset("coder", &ask));
    let Err(Error::Problem(problem)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(problem.kind, ProblemKind::Unavailable);
    assert!(problem.title.contains("still active"), "{problem:#?}");
    assert!(problem.next.unwrap().contains("--force"));
    assert_eq!(daemon.show("coder").generation, before);
    // By force it goes.
    let ask = Reset { force: true, ..ask };
    daemon.block(daemon.client().reset("coder", &ask)).unwrap();
    assert_eq!(daemon.show("coder").generation, before + 1);
    assert_ne!(daemon.pid("coder"), Some(pid));
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Interrupted
    );
    stop(&daemon, 5000);
    nobody_is_left(&daemon);
}

/// The runtime ignores signals, fills its output, closes its descriptors, and leaves a process behind that has left
/// its group, its session and its parents.
#[test]
fn a_runtime_that_does_all_that_one_should_not_is_ended_with_what_it_left() {
    let daemon = TestDaemon::empty();
    let program = daemon.home().join("wild");
    let left = daemon.home().join("left");
    let script = format!(
        "#!/bin/sh\ntrap '' TERM INT HUP\nyes flood &\n\
         (setsid sh -c \"trap '' TERM; echo \\$\\$ > '{0}.new'; mv '{0}.new' '{0}'; exec sleep 300\" &)\n\
         exec 0<&- 1>&- 2>&-\nwhile :; do sleep 300; done\n",
        left.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    daemon.daemon_args(&["--runtime-program", program.to_str().unwrap()]);
    daemon.start_daemon();
    daemon.create("coder");
    daemon.send("coder", "do: say hello");
    let orphan: u32 = until("what it leaves behind", || {
        fs::read_to_string(&left).ok()?.trim().parse().ok()
    });
    let pid = until("a process", || daemon.pid("coder"));
    stop(&daemon, 200);
    let agent = daemon.show("coder");
    assert_eq!((agent.process.pid, agent.phase), (None, Phase::Stopped));
    for pid in [pid, orphan] {
        until("its end", || {
            (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())
        });
    }
    nobody_is_left(&daemon);
}

#[test]
fn what_lost_its_runtime_is_reaped_when_it_ends() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let call = serde_json::json!({ "command": "sleep 1", "run_in_background": true });
    daemon.completed("coder", &format!("do: call shell {call} ;; say started"));
    daemon.kill_runtime("coder");
    // The next process hears of the end, and tells the model.
    daemon.completed("coder", "do: say again");
    daemon.until_kind("coder", Kind::TaskEnded);
    stop(&daemon, 5000);
    nobody_is_left(&daemon);
}

#[test]
fn a_runtime_whose_home_is_gone_ends_itself() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say hello");
    let pid = until("a process", || daemon.pid("coder"));
    daemon.kill_daemon();
    fs::remove_dir_all(daemon.home().join("run")).unwrap();
    until("its end", || {
        reap(pid);
        (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
}

/// A daemon was killed, and the next one was stopped before an agent's process had reconnected: that process
/// continued without a daemon.
#[test]
fn a_daemon_that_is_stopped_at_once_ends_the_processes_of_the_one_before() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    for _ in 0..3 {
        daemon.completed("coder", "do: say hello");
        let pid = until("a process", || daemon.pid("coder"));
        daemon.kill_daemon();
        daemon.start_daemon();
        let stopped = daemon.cli(&["daemon", "stop"]);
        assert!(stopped.status.success(), "{stopped:?}");
        until("its end", || {
            reap(pid);
            (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())
        });
        daemon.start_daemon();
    }
}

/// A runtime that dies at every start is restarted after growing pauses, and then not any more.
#[test]
fn a_crash_loop_ends_as_failed_with_the_last_error() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let config = daemon.home().join("config.toml");
    // It may name the back end of supervision.
    let _absent = fs::remove_file(&config);
    fs::create_dir(&config).unwrap();
    let sent = daemon.send("coder", "do: say hello");
    let agent = until("failure", || {
        let agent = daemon.show("coder");
        (agent.phase == Phase::Failed).then_some(agent)
    });
    let error = agent.error.unwrap();
    assert!(error.contains("config.toml cannot be read"), "{error}");
    assert_eq!(agent.process.pid, None);
    assert_eq!(daemon.model.requests().len(), 0);
    fs::remove_dir(&config).unwrap();
    let start = agentd_client::api::Start::default();
    daemon
        .block(daemon.client().start("coder", &start))
        .unwrap();
    assert_eq!(daemon.answer("coder", sent.prompt).text, "hello");
}

#[test]
fn an_agent_that_cannot_work_fails_with_the_reason() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.cwd = Some(daemon.work().join("gone").display().to_string());
    daemon.create_with("coder", spec);
    let sent = daemon.send("coder", "do: say hello");
    let agent = until("failure", || {
        let agent = daemon.show("coder");
        (agent.phase == Phase::Failed).then_some(agent)
    });
    assert!(agent.error.unwrap().contains("gone is not a directory"));
    fs::create_dir(daemon.work().join("gone")).unwrap();
    let start = agentd_client::api::Start::default();
    daemon
        .block(daemon.client().start("coder", &start))
        .unwrap();
    assert_eq!(daemon.answer("coder", sent.prompt).text, "hello");
}

/// claude-code#39151, goose#12321: two writers in one conversation.
#[test]
fn a_second_daemon_is_refused() {
    let daemon = TestDaemon::new();
    let second = daemon.command().args(["daemon", "run"]).output().unwrap();
    assert_eq!(second.status.code(), Some(3));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("another daemon runs"), "{said}");
    let pid = daemon.daemon_pid().unwrap();
    assert_eq!(daemon.block(daemon.client().daemon()).unwrap().pid, pid);
    kill(pid, Signal::HUP);
    assert_eq!(daemon.block(daemon.client().daemon()).unwrap().pid, pid);
}

/// A tool runs as the user and can reach the socket: it may read, but cannot lift its own restrictions.
#[test]
fn a_tool_may_not_approve_reset_or_configure() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.create("other");
    daemon.completed("other", "do: say hello");
    let agentd = crate::test_daemon::AGENTD;
    let home = daemon.home().display().to_string();
    let calls = [
        format!("AGENTD_HOME={home} {agentd} reset other 2>&1"),
        format!("AGENTD_HOME={home} {agentd} rename other mine 2>&1"),
        // One that has left its session and its parents.
        format!("AGENTD_HOME={home} setsid sh -c '{agentd} reset other' 2>&1"),
    ];
    for call in calls {
        let answer = daemon.completed("coder", &format!("do: {} ;; say tried", shell(&call)));
        assert_eq!(answer.text, "tried");
        let request = daemon.requests().last().unwrap().body.to_string();
        assert!(request.contains("tools may not do that"), "{request}");
    }
    assert_eq!(daemon.show("other").generation, 1);
    // To look at its own agent is allowed.
    let show = format!("AGENTD_HOME={home} {agentd} show coder");
    daemon.completed("coder", &format!("do: {} ;; say shown", shell(&show)));
    let request = daemon.requests().last().unwrap().body.to_string();
    assert!(request.contains("persistent"), "{request}");
}

/// The limits of the spec apply to the processes of tools: through the cgroup if there is one, otherwise by rlimit.
#[test]
fn a_command_is_kept_within_its_limits() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.limits.task_open_files = Some(17);
    spec.limits.task_memory_bytes = Some(64 * 1024 * 1024);
    daemon.create_with("coder", spec);
    let call = shell(
        "ulimit -n; head -c 300000000 /dev/zero > /dev/null; x=$(head -c 300000000 /dev/zero); echo survived",
    );
    daemon.completed("coder", &format!("do: {call} ;; say done"));
    let request = daemon.requests().last().unwrap().body.to_string();
    assert!(request.contains("17"), "{request}");
    let of_result = request.rsplit("tool_result").next().unwrap();
    assert!(!of_result.contains("survived"), "{of_result}");
}

/// Regression: an agent whose process was about to be restarted was shown as `up`, without a pid.
#[test]
fn a_process_that_is_not_there_is_not_shown_as_up() {
    let daemon = TestDaemon::empty();
    let program = daemon.root().join("gone");
    daemon.daemon_args(&["--runtime-program", program.to_str().unwrap()]);
    daemon.start_daemon();
    daemon.create("coder");
    daemon.send("coder", "do: say hello");
    until("the end of all tries", || {
        let agent = daemon.show("coder");
        assert_ne!(agent.process.state, ProcessState::Up, "{agent:#?}");
        assert_eq!(agent.process.pid, None);
        (agent.phase == Phase::Failed).then_some(())
    });
}

/// Regression: the daemon started the file that an upgrade had put in the place of its own. With another version of the
/// link, each process was refused, and the next one was started at once.
#[test]
fn a_daemon_starts_processes_of_its_own_build_after_an_upgrade() {
    let daemon = TestDaemon::empty();
    daemon.replace_program();
    daemon.start_daemon();
    let (new, ran) = (daemon.root().join("new"), daemon.root().join("ran"));
    fs::write(&new, format!("#!/bin/sh\n: > '{}'\n", ran.display())).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&new, daemon.program().path()).unwrap();
    daemon.create("coder");
    assert_eq!(daemon.completed("coder", "do: say hello").text, "hello");
    assert!(!ran.exists(), "the daemon ran the new file");
}

/// A daemon that is killed before it passes the secret leaves such a process. It would hold the agent's lock for an hour.
#[test]
fn a_process_without_a_secret_ends_at_once() {
    let daemon = TestDaemon::new();
    let agent = daemon.create("coder").id.to_string();
    daemon.kill_daemon();
    let mut command = daemon.command();
    command.args(["runtime", "coder", "--agent", &agent, "--orphan-ms", "1000"]);
    command.stdin(std::process::Stdio::null());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no link secret"), "{said}");
}
