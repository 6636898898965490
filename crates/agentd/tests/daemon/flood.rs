//! Programs that flood their output: what waits for the journal is bounded, and whatever is killed meanwhile, the turn ends
//! and the next prompt is answered.

use crate::acp_fixture;
use crate::test_daemon::{TestDaemon, kill, until};
use agentd_client::api::{Answer, Status};
use agentd_core::event::{Body, Kind};
use agentd_core::id::PromptId;
use agentd_core::spec::{AgentSpec, Runtime};
use rustix::process::Signal;
use std::fs;

const PROGRAM: &str = include_str!("../fixture/flood.sh");
const FILE: &str = "flood.sh";
/// How much more memory a runtime may need for a program that floods it.
const MOST_KB: u64 = 64 * 1024;

fn spec(daemon: &TestDaemon, runtime: Runtime) -> AgentSpec {
    let mut spec = acp_fixture::spec(daemon, FILE, PROGRAM);
    spec.runtime = runtime;
    let is_acp = match runtime {
        Runtime::Acp => "yes",
        _ => "no",
    };
    spec.env.insert("ACP".to_owned(), is_acp.to_owned());
    spec
}

/// The most memory that a process has had, in KiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    line.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

fn programs(daemon: &TestDaemon) -> Vec<u32> {
    acp_fixture::processes(daemon, |arguments| arguments.contains(FILE))
}

/// Floods a runtime of its own with each of these, and returns the ones that take too much of its memory.
fn flooded(runtime: Runtime, floods: &[&str]) -> Vec<String> {
    let daemon = TestDaemon::new();
    let mut too_much = Vec::new();
    for flood in floods {
        daemon.create_with(flood, spec(&daemon, runtime));
        assert_eq!(daemon.completed(flood, "hello").text, "hello");
        let pid = daemon.pid(flood).unwrap();
        let idle = peak(pid);
        let answer = daemon.ask(flood, &format!("flood {flood}"));
        assert_eq!(answer.status, Status::Failed, "{flood}: {answer:#?}");
        let more = peak(pid) - idle;
        if more > MOST_KB {
            too_much.push(format!("{flood}: {more} KiB more than {idle}"));
        }
        assert_eq!(daemon.completed(flood, "hello").text, "hello", "{flood}");
        assert_eq!(daemon.pid(flood), Some(pid), "the runtime has not died");
        assert!(daemon.cli(&["stop", flood]).status.success());
    }
    assert!(programs(&daemon).is_empty());
    daemon.verify();
    too_much
}

#[test]
fn a_command_that_floods_takes_little_memory() {
    let floods = ["text", "line", "control", "calls", "large", "numbers"];
    let too_much = flooded(Runtime::Command, &floods);
    assert!(too_much.is_empty(), "{too_much:#?}");
}

#[test]
fn an_acp_program_that_floods_takes_little_memory() {
    let floods = ["text", "line", "control", "calls", "large", "numbers"];
    let too_much = flooded(Runtime::Acp, &floods);
    assert!(too_much.is_empty(), "{too_much:#?}");
}

/// An agent in the middle of a flood of calls that its settings do not end, and the prompt.
fn in_a_flood(daemon: &TestDaemon, runtime: Runtime) -> PromptId {
    let mut spec = spec(daemon, runtime);
    spec.limits.program_calls = Some(1_000_000);
    spec.limits.program_bytes = Some(1 << 40);
    daemon.create_with("coder", spec);
    let sent = daemon.send("coder", "flood pairs");
    until_more_calls(daemon, 0);
    sent.prompt
}

fn until_more_calls(daemon: &TestDaemon, before: usize) {
    until("calls", || {
        (daemon.count("coder", Kind::ToolStarted) > before + 3).then_some(())
    });
}

/// The turn has ended so, the commands that wait for it return, and the next prompt is answered by a new program.
fn ends(daemon: &TestDaemon, prompt: PromptId, status: Status) {
    // It returns; its exit status is that of the turn.
    let _waited = daemon.cli(&["wait", "coder"]);
    let answer: Answer = daemon.answer("coder", prompt);
    assert_eq!(answer.status, status, "{answer:#?}");
    assert_eq!(daemon.completed("coder", "hello").text, "hello");
    assert_eq!(daemon.effects(), ["flood pairs", "hello"]);
    let ends = daemon.events("coder").into_iter();
    let ends = ends.filter(|event| matches!(event.body, Body::TurnEnded(_)));
    assert_eq!(ends.count(), 2);
    daemon.verify();
}

const BOTH: [Runtime; 2] = [Runtime::Command, Runtime::Acp];

#[test]
fn a_flooding_program_that_is_killed_ends_its_turn() {
    for runtime in BOTH {
        let daemon = TestDaemon::new();
        let prompt = in_a_flood(&daemon, runtime);
        for pid in programs(&daemon) {
            kill(pid, Signal::KILL);
        }
        ends(&daemon, prompt, Status::Failed);
    }
}

#[test]
fn a_runtime_that_is_killed_in_a_flood_ends_the_turn() {
    for runtime in BOTH {
        let daemon = TestDaemon::new();
        let prompt = in_a_flood(&daemon, runtime);
        daemon.kill_runtime("coder");
        ends(&daemon, prompt, Status::Interrupted);
    }
}

#[test]
fn a_flood_goes_on_under_the_next_daemon_and_its_turn_ends() {
    for runtime in BOTH {
        let daemon = TestDaemon::new();
        let prompt = in_a_flood(&daemon, runtime);
        daemon.kill_daemon();
        daemon.start_daemon();
        until_more_calls(&daemon, daemon.count("coder", Kind::ToolStarted));
        daemon.block(daemon.client().interrupt("coder")).unwrap();
        ends(&daemon, prompt, Status::Interrupted);
    }
}
