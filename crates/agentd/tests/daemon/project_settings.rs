//! The settings of a project: they count once they are trusted, they only narrow, and an agent keeps what it was created
//! with.

use crate::test_daemon::TestDaemon;
use agentd_client::api::Trust;
use agentd_core::spec::{AgentSpec, ApprovalMode, Network, Sandbox, Verbosity};
use std::fs;
use std::path::Path;

fn write(dir: &Path, text: &str) {
    fs::create_dir_all(dir.join(".agentd")).unwrap();
    fs::write(dir.join(".agentd/config.toml"), text).unwrap();
}

fn trust(daemon: &TestDaemon, dir: &Path) -> Result<(), String> {
    let trust = Trust {
        dir: dir.display().to_string(),
        hash: None,
        trusted: true,
    };
    let client = daemon.client();
    let done = daemon.block(client.set_trust(&trust));
    done.map(drop).map_err(|error| format!("{error:?}"))
}

/// Creates an agent as a user does, and returns its stored settings.
fn create(daemon: &TestDaemon, args: &[&str]) -> AgentSpec {
    let all: Vec<&str> = ["create"].iter().chain(args).copied().collect();
    let created = daemon.cli(&all);
    assert!(created.status.success(), "{created:?}");
    daemon.block(daemon.client().spec(args[0])).unwrap()
}

/// The error of a command that is refused.
fn refused(daemon: &TestDaemon, args: &[&str]) -> String {
    let output = daemon.cli(args);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

const NARROW: &str = "[agents]\nsandbox = \"read-only\"\nnetwork = [\"a.example\"]\napproval = \"always\"\n\
    verbosity = \"low\"\nfast = true\nlimits = { max_iterations = 7, turn = { tokens = 5000 } }\n\
    permissions = [{ tool = \"shell\", pattern = \"git push*\", decision = \"deny\" }]\n";

#[test]
fn a_trusted_project_narrows_what_new_agents_get() {
    let daemon = TestDaemon::new();
    write(&daemon.work(), NARROW);
    let before = create(&daemon, &["before"]);
    assert_eq!(
        (before.approval, before.verbosity),
        (None, None),
        "it is not trusted"
    );
    trust(&daemon, &daemon.work()).unwrap();
    let spec = create(&daemon, &["coder"]);
    assert_eq!(spec.sandbox, Some(Sandbox::ReadOnly));
    assert!(matches!(spec.network, Some(Network::Hosts(_))));
    assert_eq!(spec.approval, Some(ApprovalMode::Always));
    assert_eq!(
        (spec.verbosity, spec.fast),
        (Some(Verbosity::Low), Some(true))
    );
    assert_eq!(spec.limits.max_iterations, 7);
    assert_eq!(spec.limits.turn.tokens, Some(5000));
    assert_eq!(spec.limits.max_tasks, 16, "the others are the defaults");
    assert_eq!(spec.permissions.len(), 1);
    // The user's own choice wins, in a file or on the command line, also if it is the built-in default.
    let file = daemon.root().join("own.md");
    fs::write(
        &file,
        "---\napproval: on-request\nlimits: {max_iterations: 100}\n---\n",
    )
    .unwrap();
    let own = create(
        &daemon,
        &[
            "own",
            "-f",
            file.to_str().unwrap(),
            "--verbosity",
            "high",
            "--fast=false",
        ],
    );
    assert_eq!(own.approval, Some(ApprovalMode::OnRequest));
    assert_eq!(own.limits.max_iterations, 100);
    assert_eq!(
        (own.verbosity, own.fast),
        (Some(Verbosity::High), Some(false))
    );
    assert_eq!(own.sandbox, Some(Sandbox::ReadOnly));
    // An existing agent does not change with the file, and other content needs another decision.
    write(&daemon.work(), "[agents]\napproval = \"never\"\n");
    assert_eq!(daemon.block(daemon.client().spec("coder")).unwrap(), spec);
    for text in ["have changed", "are gone"] {
        let error = refused(&daemon, &["create", "after"]);
        assert!(
            error.contains(text) && error.contains("agentd trust"),
            "{error}"
        );
        fs::remove_file(daemon.work().join(".agentd/config.toml")).ok();
    }
    let untrusted = daemon.cli(&["untrust", daemon.work().to_str().unwrap()]);
    assert!(untrusted.status.success(), "{untrusted:?}");
    assert_eq!(create(&daemon, &["after"]).approval, None);
}

#[test]
fn a_file_that_is_not_trusted_is_mentioned() {
    let daemon = TestDaemon::new();
    let mentioned = |args: &[&str]| {
        let output = daemon.cli(args);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        text.matches("is ignored, because you have not trusted it")
            .count()
    };
    assert_eq!(mentioned(&["create", "first"]), 0);
    write(&daemon.work(), NARROW);
    assert_eq!(mentioned(&["create", "second"]), 1);
    assert_eq!(mentioned(&["run", "do: say hello"]), 1);
    trust(&daemon, &daemon.work()).unwrap();
    assert_eq!(mentioned(&["create", "third"]), 0);
}

#[test]
fn a_project_cannot_widen_the_sandbox_of_the_daemon() {
    let daemon = TestDaemon::empty();
    daemon.daemon_env("AGENTD_SANDBOX", "read-only");
    daemon.start_daemon();
    write(&daemon.work(), "[agents]\nsandbox = \"workspace-write\"\n");
    trust(&daemon, &daemon.work()).unwrap();
    // The client's own environment says nothing else.
    let output = daemon
        .command()
        .args(["create", "coder"])
        .env("AGENTD_HOME", daemon.home())
        .envs(daemon.caller())
        .env_remove("AGENTD_SANDBOX")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("`agents.sandbox`"), "{error}");
}

#[test]
fn a_project_that_would_widen_makes_the_creation_fail() {
    let daemon = TestDaemon::new();
    let own = "[agents]\napproval = \"always\"\nsandbox = \"read-only\"\nlimits = { max_iterations = 10 }\n";
    fs::write(daemon.home().join("config.toml"), own).unwrap();
    create(&daemon, &["before"]);
    for (text, line, key) in [
        ("[agents]\napproval = \"never\"\n", 2, "agents.approval"),
        (
            "\n[agents]\nsandbox = \"workspace-write\"\n",
            3,
            "agents.sandbox",
        ),
        (
            "[agents.limits]\nmax_iterations = 11\n",
            2,
            "agents.limits.max_iterations",
        ),
        ("[agents]\nprovider = \"evil\"\n", 2, "agents.provider"),
    ] {
        write(&daemon.work(), text);
        trust(&daemon, &daemon.work()).unwrap();
        let error = refused(&daemon, &["create", "coder"]);
        assert!(error.contains(&format!("line {line}: `{key}`")), "{error}");
        assert!(error.contains("agentd untrust"), "{error}");
        refused(&daemon, &["run", "hello"]);
    }
    // The agent that exists goes on.
    daemon.completed("before", "do: say still here");
    let untrusted = daemon.cli(&["untrust", daemon.work().to_str().unwrap()]);
    assert!(untrusted.status.success(), "{untrusted:?}");
    create(&daemon, &["coder"]);
}

#[test]
fn what_only_the_user_may_set_cannot_be_trusted() {
    let daemon = TestDaemon::new();
    for (text, key) in [
        (
            "[providers.x]\nwire = \"gemini\"\nbase_url = \"http://x\"\n",
            "providers",
        ),
        ("[agents]\npass_env = [\"TOKEN\"]\n", "agents.pass_env"),
        ("[agents]\npass = [\"docker\"]\n", "agents.pass"),
        ("[agents]\nsandbox = \"full-access\"\n", "agents.sandbox"),
        ("[agents]\nnetwork = \"on\"\n", "agents.network"),
        ("[ui]\ntheme = \"none\"\n", "ui"),
    ] {
        write(&daemon.work(), text);
        let error = trust(&daemon, &daemon.work()).unwrap_err();
        assert!(error.contains(&format!("`{key}`")), "{key}: {error}");
        create(&daemon, &[&format!("agent-{}", key.replace('.', "-"))]);
    }
}

#[test]
fn the_file_in_the_root_counts_in_the_directories_below_it() {
    let daemon = TestDaemon::new();
    let below = daemon.work().join("crates/one");
    fs::create_dir_all(&below).unwrap();
    fs::create_dir_all(daemon.work().join(".git")).unwrap();
    write(&daemon.work(), "[agents]\napproval = \"always\"\n");
    write(&below, "[agents]\nverbosity = \"high\"\n");
    trust(&daemon, &daemon.work()).unwrap();
    let cwd = below.to_str().unwrap();
    let spec = create(&daemon, &["outer", "--cwd", cwd]);
    assert_eq!(spec.approval, Some(ApprovalMode::Always));
    assert_eq!(spec.verbosity, None, "the inner file is not trusted");
    trust(&daemon, &below).unwrap();
    let spec = create(&daemon, &["inner", "--cwd", cwd]);
    assert_eq!(spec.approval, Some(ApprovalMode::Always));
    assert_eq!(spec.verbosity, Some(Verbosity::High));
}

/// A model that writes the file gains nothing, and loses no rule that its agent was created with.
#[test]
fn a_model_that_writes_the_file_gains_nothing() {
    let daemon = TestDaemon::new();
    let rule = "[agents]\npermissions = [{ tool = \"shell\", pattern = \"echo *\", decision = \"deny\" }]\n";
    write(&daemon.work(), rule);
    trust(&daemon, &daemon.work()).unwrap();
    let before = create(&daemon, &["coder"]);
    let evil = "[agents]\\nsandbox = \\\"full-access\\\"\\npass_env = [\\\"HOME\\\"]\\n";
    let prompt = format!(
        r#"do: call shell {{"command":"printf '{evil}' > .agentd/config.toml"}} ;; say done"#
    );
    daemon.completed("coder", &prompt);
    let written = fs::read_to_string(daemon.work().join(".agentd/config.toml")).unwrap();
    assert!(written.contains("full-access"), "{written}");
    let restarted = daemon.cli(&["restart", "coder"]);
    assert!(restarted.status.success(), "{restarted:?}");
    assert_eq!(daemon.block(daemon.client().spec("coder")).unwrap(), before);
    daemon.completed(
        "coder",
        r#"do: call shell {"command":"echo x >> effects"} ;; say done"#,
    );
    assert!(daemon.effects().is_empty(), "its rule still applies");
    let next = daemon.cli(&["create", "next"]);
    assert_eq!(next.status.code(), Some(3), "{next:?}");
    assert!(trust(&daemon, &daemon.work()).is_err());
}
