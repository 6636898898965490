//! `verbosity` and `fast`: parameters where the model takes them, a sentence or nothing elsewhere, and kept by a reset.

use crate::test_daemon::{KEY, TestDaemon};
use agentd_client::api::Reset;
use agentd_core::spec::Verbosity;
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

/// The body of the last request.
fn last(daemon: &TestDaemon) -> Value {
    daemon.requests().pop().unwrap().body
}

/// The first request of an agent with both preferences.
fn request(provider: &str, model: &str) -> Value {
    let daemon = daemon();
    let ran = daemon.cli(&[
        "run",
        "--provider",
        provider,
        "--model",
        model,
        "--verbosity",
        "low",
        "--fast",
        "Hello.",
    ]);
    assert!(ran.status.success(), "{provider}/{model}: {ran:?}");
    daemon.requests().remove(0).body
}

#[test]
fn a_model_that_takes_them_gets_parameters() {
    let body = request("openai", "gpt-5");
    assert_eq!(body["text"]["verbosity"], "low");
    assert_eq!(body["service_tier"], "priority");
    assert!(!body.to_string().contains(Verbosity::Low.sentence()));
    let body = request("openai-chat", "gpt-5");
    assert_eq!(body["verbosity"], "low");
    assert_eq!(body["service_tier"], "priority");
    assert!(!body.to_string().contains(Verbosity::Low.sentence()));
}

#[test]
fn any_other_model_is_told_in_the_system_prompt() {
    for (provider, model, place) in [
        ("anthropic", "claude-sonnet-5-5", "/system"),
        ("gemini", "gemini-2.5-flash", "/systemInstruction"),
        ("openai", "gpt-4.1", "/instructions"),
        ("openai-chat", "some-model", "/messages/0"),
    ] {
        let body = request(provider, model);
        let system = body.pointer(place).unwrap().to_string();
        assert!(
            system.contains(Verbosity::Low.sentence()),
            "{provider}: {system}"
        );
        assert_eq!(body.get("verbosity"), None);
        assert_eq!(body.get("text"), None);
        let has_tier = body.get("service_tier").is_some();
        assert_eq!(has_tier, model == "gpt-4.1", "{provider}/{model}");
    }
}

#[test]
fn they_change_with_set_and_a_reset_keeps_them() {
    let daemon = daemon();
    let created = daemon.cli(&[
        "create",
        "coder",
        "--provider",
        "openai",
        "--model",
        "gpt-5",
    ]);
    assert!(created.status.success(), "{created:?}");
    daemon.completed("coder", "Hello.");
    let body = last(&daemon);
    assert_eq!((body.get("text"), body.get("service_tier")), (None, None));
    let set = daemon.cli(&["set", "coder", "verbosity=high", "fast=true"]);
    assert!(set.status.success(), "{set:?}");
    daemon.completed("coder", "Again.");
    assert_eq!(last(&daemon)["text"]["verbosity"], "high");
    daemon
        .block(daemon.client().reset("coder", &Reset::default()))
        .unwrap();
    daemon.completed("coder", "Once more.");
    let body = last(&daemon);
    assert_eq!(body["text"]["verbosity"], "high");
    assert_eq!(body["service_tier"], "priority");
}

/// The prompt cache of a provider works only if each request begins like the one before it.
#[test]
fn the_sentence_does_not_change_between_requests() {
    let daemon = daemon();
    let mut spec = daemon.spec();
    spec.verbosity = Some(Verbosity::Medium);
    daemon.create_with("coder", spec);
    daemon.completed("coder", "One.");
    let restarted = daemon.cli(&["restart", "coder"]);
    assert!(restarted.status.success(), "{restarted:?}");
    daemon.completed("coder", "Two.");
    let requests = daemon.requests();
    let text = |body: &Value| body["system"][0]["text"].clone();
    assert!(
        text(&requests[0].body)
            .to_string()
            .contains(Verbosity::Medium.sentence())
    );
    assert_eq!(text(&requests[0].body), text(&requests[1].body));
}
