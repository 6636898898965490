//! Settings with which an agent cannot run are refused, and an agent that failed because of its settings starts when they are
//! mended.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::Error;
use agentd_client::api::{Create, Stop};
use agentd_core::spec::{AgentSpec, ServerTool};
use agentd_core::state::Phase;
use agentd_core::usage::MicroUsd;
use std::fs;

fn refused(daemon: &TestDaemon, spec: AgentSpec) -> String {
    let create = Create {
        name: Some("other".to_owned()),
        spec,
        ..Create::default()
    };
    let created = daemon.block(daemon.client().create(&create));
    match created.unwrap_err() {
        Error::Problem(problem) => problem.detail.unwrap_or_default(),
        error => panic!("{error}"),
    }
}

/// Regression: `set` and `POST /v1/agents` accepted an unknown provider, a server tool that the wire lacks and a money limit
/// without a price; the agent failed afterwards.
#[test]
fn settings_that_cannot_run_are_refused() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    for (setting, why) in [
        ("provider=nope", "unknown provider `nope`"),
        ("limits.turn.usd=1", "the price of this model is unknown"),
    ] {
        let set = daemon.cli(&["set", "coder", setting]);
        assert!(!set.status.success(), "{set:?}");
        let text = String::from_utf8_lossy(&set.stderr).into_owned();
        assert!(text.contains(why), "{text}");
    }
    let tools = r#"server_tools=["web_search"]"#;
    let set = daemon.cli(&["set", "coder", "provider=openai-chat", tools]);
    assert!(!set.status.success(), "{set:?}");
    assert_eq!(daemon.completed("coder", "do: say hello").text, "hello");
    let mut unknown = daemon.spec();
    unknown.provider = Some("nope".to_owned());
    assert!(refused(&daemon, unknown).contains("unknown provider `nope`"));
    let mut unpriced = daemon.spec();
    unpriced.limits.turn.usd = Some(MicroUsd(1));
    assert!(refused(&daemon, unpriced).contains("the price of this model"));
    let mut searching = daemon.spec();
    searching.provider = Some("openai-chat".to_owned());
    searching.server_tools = vec![ServerTool::WebSearch];
    assert!(refused(&daemon, searching).contains("server_tools"));
}

/// A provider that was added to the user's file after the daemon had read it can be used.
#[test]
fn a_new_provider_of_the_users_file_counts_at_once() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    add_provider(&daemon);
    let set = daemon.cli(&["set", "coder", "provider=lab", "model=some-model"]);
    assert!(set.status.success(), "{set:?}");
}

const LAB: &str =
    "\n[providers.lab]\nwire = \"openai_chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";

fn add_provider(daemon: &TestDaemon) {
    let path = daemon.home().join("config.toml");
    let before = fs::read_to_string(&path).unwrap_or_default();
    fs::write(&path, before + LAB).unwrap();
}

/// An agent whose provider was removed from the user's file, and its prompt.
fn failed(daemon: &TestDaemon) -> agentd_core::id::PromptId {
    add_provider(daemon);
    let mut spec = daemon.spec();
    spec.provider = Some("lab".to_owned());
    daemon.create_with("coder", spec);
    let path = daemon.home().join("config.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(LAB, "")).unwrap();
    let sent = daemon.send("coder", "do: say hello");
    until("failure", || {
        (daemon.show("coder").phase == Phase::Failed).then_some(())
    });
    sent.prompt
}

/// Regression: an agent that failed because of its settings stayed failed after they were mended.
#[test]
fn an_agent_that_failed_because_of_its_settings_starts_when_they_are_mended() {
    let daemon = TestDaemon::new();
    let prompt = failed(&daemon);
    let set = daemon.cli(&["set", "coder", "provider=anthropic"]);
    assert!(set.status.success(), "{set:?}");
    assert_eq!(daemon.answer("coder", prompt).text, "hello");
}

#[test]
fn an_agent_that_was_stopped_stays_stopped_when_its_settings_are_mended() {
    let daemon = TestDaemon::new();
    failed(&daemon);
    let (client, stop) = (daemon.client(), Stop::default());
    daemon.block(client.stop("coder", &stop)).unwrap();
    let set = daemon.cli(&["set", "coder", "provider=anthropic"]);
    assert!(set.status.success(), "{set:?}");
    assert_eq!(daemon.show("coder").phase, Phase::Stopped);
    assert_eq!(daemon.model.requests().len(), 0);
}
