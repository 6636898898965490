//! Agents of others, as their registries have them, under agentd and against the strict fake model. goose runs always;
//! `cargo xtask peers` runs all of them. They run in the sandbox, where the machine supports it.

mod agents;

use crate::test_daemon::{TestDaemon, kill, until};
use agentd_client::api::{Answer, Reset, Status};
use agentd_core::event::{Body, Direction, Kind};
use agentd_core::id::PromptId;
use agentd_core::message::{Block, CallOutcome};
use agentd_core::spec::{AgentSpec, Command, Runtime, Sandbox};
use agentd_testkit::model::{FakeModel, Options, Scenario};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An agent of others.
struct Peer {
    name: &'static str,
    /// Where `cargo xtask` has installed it.
    program: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    /// Its configuration.
    dir: PathBuf,
    /// Whether it asks before it runs a command.
    asks: bool,
    /// Whether it reports what a command wrote.
    shows_output: bool,
    after_interrupt: AfterInterrupt,
}

/// What a peer does with the first prompt after a turn that was interrupted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AfterInterrupt {
    Answers,
    /// Its session does not work any more, and agentd begins a new one for the prompt after that.
    Fails,
}

fn installed(path: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(2).unwrap();
    root.join("target/npm").join(path)
}

/// What its model does for a prompt that contains the first word. `call` is a call of the peer's tool that runs a command. A
/// peer that could not load its session is told the earlier prompts too: the first entry that matches counts.
fn model(tool: &str, arguments: impl Fn(&str) -> Value) -> FakeModel {
    let call = |command: &str| format!("call {tool} {}", arguments(command));
    let replies = json!([
        {"when": "plain-task", "replies": [["say plain done"]]},
        {"when": "first-task", "replies": [[call("echo hi-there >> effects; cat effects")], ["say first done"]]},
        {"when": "long-task", "replies": [[call("echo begun >> effects; sleep 300")], ["say long done"]]},
        {"when": "mortal-task", "replies": [[call("echo doomed >> effects; sleep 300")], ["say mortal done"]]},
        {"when": "any", "replies": [["say something else"]]},
    ]);
    let scenario = Scenario::parse(&replies.to_string()).unwrap();
    FakeModel::start_with(Options {
        scenario,
        ..Options::default()
    })
    .unwrap()
}

/// The arguments that most peers' tools have.
fn command(command: &str) -> Value {
    json!({"command": command, "description": "a command of the test"})
}

fn sandbox() -> Sandbox {
    match agentd_sandbox::support().namespaces {
        Ok(_) => Sandbox::WorkspaceWrite,
        Err(missing) => {
            println!("without a sandbox: {missing}");
            Sandbox::FullAccess
        }
    }
}

fn create(daemon: &TestDaemon, peer: &Peer) {
    let mut spec = AgentSpec {
        runtime: Runtime::Acp,
        command: Some(Command {
            program: peer.program.display().to_string(),
            args: peer.args.clone(),
            ..Command::default()
        }),
        provider: None,
        model: None,
        sandbox: Some(sandbox()),
        readable: vec![installed("").display().to_string()],
        writable: vec![peer.dir.display().to_string()],
        ..daemon.spec()
    };
    daemon.caller_env("PEER_KEY", "sk-of-a-peer-0123456789");
    spec.env.extend(peer.env.iter().cloned());
    daemon.create_with("coder", spec);
}

/// Sends a prompt, and approves what the peer asks about.
fn sent(daemon: &TestDaemon, peer: &Peer, text: &str) -> PromptId {
    let sent = daemon.send("coder", text);
    if peer.asks {
        let approval = until("an approval", || {
            let answer = daemon.client();
            let answer = daemon.block(answer.answer("coder", sent.prompt, Duration::ZERO));
            let answer = answer.unwrap();
            assert!(!answer.status.is_over(), "it did not ask: {answer:#?}");
            let shown = daemon.show("coder");
            shown.approvals.first().map(|approval| approval.id)
        });
        let id = approval.to_string();
        assert!(daemon.cli(&["approve", "coder", &id]).status.success());
    }
    sent.prompt
}

fn plain(daemon: &TestDaemon, text: &str) {
    let answer = daemon.ask("coder", text);
    assert_eq!(answer.status, Status::Completed, "{answer:#?}");
    assert!(answer.text.contains("plain done"), "{answer:#?}");
}

fn after_interrupt(daemon: &TestDaemon, peer: &Peer) {
    let text = "plain-task after the interrupt";
    if peer.after_interrupt == AfterInterrupt::Fails {
        let answer = daemon.ask("coder", text);
        assert_eq!(answer.status, Status::Failed, "{answer:#?}");
        let why = answer.error.unwrap();
        assert!(why.contains("begins a new session"), "{why}");
    }
    plain(daemon, text);
}

fn effect(daemon: &TestDaemon, what: &str) {
    until("the command of the peer", || {
        daemon.effects().contains(&what.to_owned()).then_some(())
    });
}

fn reset(daemon: &TestDaemon, step: Option<Direction>) {
    let reset = Reset {
        step,
        ..Reset::default()
    };
    daemon
        .block(daemon.client().reset("coder", &reset))
        .unwrap();
}

/// The processes of the peer, without agentd's own.
fn processes(daemon: &TestDaemon) -> Vec<(u32, String)> {
    let own = daemon.program().path().display().to_string();
    let is_own = |arguments: &str| arguments.starts_with("agentd ") || arguments.contains(&own);
    let mut all = daemon.processes();
    all.retain(|(_, arguments)| !arguments.is_empty() && !is_own(arguments));
    all
}

fn namespace(pid: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}

/// The namespaces in which the processes of the peer run: none without a sandbox.
fn namespaces(daemon: &TestDaemon) -> BTreeSet<PathBuf> {
    let pids = processes(daemon).into_iter().map(|(pid, _)| pid);
    let mut all: BTreeSet<PathBuf> = pids.filter_map(|pid| namespace(&pid.to_string())).collect();
    all.remove(&namespace("self").unwrap());
    all
}

/// Whatever a process has made of its arguments and its environment, it is in its namespace.
fn is_empty(namespaces: &BTreeSet<PathBuf>) -> bool {
    let mut all = fs::read_dir("/proc").unwrap().flatten();
    !all.any(|entry| {
        let pid = entry.file_name().to_string_lossy().into_owned();
        namespace(&pid).is_some_and(|namespace| namespaces.contains(&namespace))
    })
}

fn outcomes(daemon: &TestDaemon) -> Vec<(CallOutcome, Vec<Block>)> {
    let events = daemon.events("coder").into_iter();
    let results = events.filter_map(|event| match event.body {
        Body::ResultAdded(result) => Some((result.outcome, result.blocks)),
        _ => None,
    });
    results.collect()
}

fn a_turn_with_a_tool(daemon: &TestDaemon, peer: &Peer) {
    let prompt = sent(daemon, peer, "first-task");
    let answer: Answer = daemon.answer("coder", prompt);
    assert_eq!(answer.status, Status::Completed, "{answer:#?}");
    assert!(answer.text.contains("first done"), "{answer:#?}");
    assert_eq!(daemon.effects(), ["hi-there"], "{}", peer.name);
    let (outcome, blocks) = outcomes(daemon).pop().unwrap();
    assert_eq!(outcome, CallOutcome::Ok);
    let has_output = format!("{blocks:?}").contains("hi-there");
    assert_eq!(has_output, peer.shows_output, "{blocks:?}");
}

fn an_interrupt(daemon: &TestDaemon, peer: &Peer) {
    let prompt = sent(daemon, peer, "long-task");
    effect(daemon, "begun");
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    let answer = daemon.answer("coder", prompt);
    assert_eq!(answer.status, Status::Interrupted, "{answer:#?}");
    until("the end of the command", || {
        let is_left = |(_, arguments): &(u32, String)| arguments.contains("sleep 300");
        (!processes(daemon).iter().any(is_left)).then_some(())
    });
    after_interrupt(daemon, peer);
}

/// Only the program itself is killed: what it has started ends with it.
fn death_in_mid_turn(daemon: &TestDaemon, peer: &Peer, model: &FakeModel) {
    let prompt = sent(daemon, peer, "mortal-task");
    effect(daemon, "doomed");
    // The peer may report the call later than it runs.
    until("the call in the journal", || {
        let started = daemon.count("coder", Kind::ToolStarted);
        (started > outcomes(daemon).len()).then_some(())
    });
    let name = peer.program.display().to_string();
    let before = processes(daemon);
    for (pid, arguments) in &before {
        if arguments.contains(&name) {
            kill(*pid, Signal::KILL);
        }
    }
    let answer = daemon.answer("coder", prompt);
    assert_eq!(answer.status, Status::Failed, "{answer:#?}");
    assert_eq!(outcomes(daemon).last().unwrap().0, CallOutcome::Unknown);
    until("the end of the old processes", || {
        let now = processes(daemon);
        (!now.iter().any(|process| before.contains(process))).then_some(())
    });
    plain(daemon, "plain-task after the crash");
    // Its model knows what is unknown.
    let mut requests = model.requests().into_iter();
    let is_told = requests.any(|request| request.body.to_string().contains("effect is unknown"));
    assert!(is_told, "{}", peer.name);
}

/// A turn with a tool and a permission request, an interrupt, the peer's death in mid-turn, reset and undo, and no process
/// that is left.
fn drive(peer: &Peer, model: &FakeModel) {
    let daemon = TestDaemon::new();
    create(&daemon, peer);
    a_turn_with_a_tool(&daemon, peer);
    let mut used = namespaces(&daemon);
    an_interrupt(&daemon, peer);
    used.extend(namespaces(&daemon));
    death_in_mid_turn(&daemon, peer, model);
    used.extend(namespaces(&daemon));
    reset(&daemon, None);
    plain(&daemon, "plain-task after the reset");
    used.extend(namespaces(&daemon));
    reset(&daemon, Some(Direction::Undo));
    plain(&daemon, "plain-task after the undo");
    used.extend(namespaces(&daemon));
    assert_eq!(daemon.effects(), ["hi-there", "begun", "doomed"]);
    daemon.verify();
    assert!(daemon.cli(&["stop", "coder"]).status.success());
    until("no process of the peer", || {
        (processes(&daemon).is_empty() && is_empty(&used)).then_some(())
    });
    let refused = model.refused();
    let expected = match peer.after_interrupt {
        AfterInterrupt::Answers => 0,
        AfterInterrupt::Fails => 1,
    };
    assert_eq!(refused.len(), expected, "{refused:#?}");
    println!("{}: passed", peer.name);
}
