//! What a model is given: the first request of an agent with default settings, as each provider gets it. Each body is a
//! golden file, so that every change of what models see is visible in a review. `AGENTD_WRITE_GOLDEN=1` writes them
//! again.

use crate::golden;
use crate::test_daemon::{KEY, TestDaemon};
use agentd_core::spec::{Subagent, TOOLS};
use agentd_testkit::model::Format;
use serde_json::Value;

/// A daemon whose callers have a key for each provider.
fn daemon() -> TestDaemon {
    let daemon = TestDaemon::new();
    let openai = daemon.model.base_url(Format::OpenaiChat);
    let gemini = daemon.model.base_url(Format::Gemini);
    for (name, value) in [
        ("OPENAI_API_KEY", KEY),
        ("OPENAI_BASE_URL", openai.as_str()),
        ("GEMINI_API_KEY", KEY),
        ("GOOGLE_GEMINI_BASE_URL", gemini.as_str()),
    ] {
        daemon.caller_env(name, value);
    }
    daemon
}

/// The JSON as text, with a placeholder for each value that differs from run to run.
fn check(daemon: &TestDaemon, name: &str, body: &Value) {
    let text = serde_json::to_string_pretty(body).unwrap();
    let cwd = daemon.work().display().to_string();
    let text = text.replace(&cwd, "<cwd>");
    let platform = format!("{}, {}", std::env::consts::OS, std::env::consts::ARCH);
    let text = text.replace(&platform, "<platform>");
    let text = without_date(&text);
    golden::check(&format!("requests/{name}.json"), &format!("{text}\n"));
}

fn without_date(text: &str) -> String {
    const MARK: &str = "- date: ";
    const DATE: &str = "2026-01-31";
    match text.split_once(MARK) {
        Some((before, after)) => format!("{before}{MARK}<date>{}", &after[DATE.len()..]),
        None => text.to_owned(),
    }
}

#[test]
fn the_first_request_to_each_provider_is_as_it_was() {
    for (provider, format) in [
        ("anthropic", Format::Anthropic),
        ("openai", Format::OpenaiResponses),
        ("openai-chat", Format::OpenaiChat),
        ("gemini", Format::Gemini),
    ] {
        let daemon = daemon();
        let ran = daemon.cli(&["run", "--provider", provider, "Hello."]);
        assert!(ran.status.success(), "{provider}: {ran:?}");
        let requests = daemon.requests();
        assert_eq!(requests[0].format, format);
        check(&daemon, format.name(), &requests[0].body);
    }
}

#[test]
fn the_tools_of_an_agent_that_has_all_of_them_are_as_they_were() {
    let daemon = daemon();
    let mut spec = daemon.spec();
    spec.tools = Some(TOOLS.iter().map(|&name| name.to_owned()).collect());
    spec.auto_reset.by_tool = true;
    let reviewer = Subagent {
        description: Some("reads a change and lists its mistakes".to_owned()),
        ..Subagent::default()
    };
    spec.agents.insert("reviewer".to_owned(), reviewer);
    daemon.create_with("coder", spec);
    daemon.completed("coder", "Hello.");
    let requests = daemon.requests();
    let tools = &requests[0].body["tools"];
    assert_eq!(tools.as_array().map(Vec::len), Some(TOOLS.len()));
    check(&daemon, "all_tools", tools);
}
