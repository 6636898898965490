//! Tools that the provider runs: sent by choice, kept in the journal, sent back as the provider requires, never run here.

use crate::test_daemon::{KEY, TestDaemon};
use agentd_core::event::{Body, Kind, NoticeCause};
use agentd_core::message::Block;
use agentd_core::spec::{AgentSpec, ServerTool};
use agentd_testkit::model::Format;
use serde_json::{Value, json};
use std::fs;

fn daemon(change: impl FnOnce(&mut AgentSpec)) -> TestDaemon {
    let daemon = TestDaemon::new();
    let openai = daemon.model.base_url(Format::OpenaiResponses);
    let gemini = daemon.model.base_url(Format::Gemini);
    for (name, value) in [
        ("OPENAI_API_KEY", KEY),
        ("OPENAI_BASE_URL", openai.as_str()),
        ("GEMINI_API_KEY", KEY),
        ("GOOGLE_GEMINI_BASE_URL", gemini.as_str()),
    ] {
        daemon.caller_env(name, value);
    }
    let mut spec = daemon.spec();
    spec.server_tools = vec![ServerTool::WebSearch];
    change(&mut spec);
    daemon.create_with("coder", spec);
    daemon
}

fn of(provider: &str, model: &str) -> impl FnOnce(&mut AgentSpec) {
    let (provider, model) = (provider.to_owned(), model.to_owned());
    move |spec| {
        if provider == "gemini" {
            spec.tools = Some(Vec::new());
        }
        (spec.provider, spec.model) = (Some(provider), Some(model));
    }
}

/// The provider's own data of the last reply, as the journal has it.
fn kept(daemon: &TestDaemon) -> Vec<Value> {
    let events = daemon.events("coder");
    let blocks = events.iter().rev().find_map(|event| match &event.body {
        Body::MessageAdded(message) => Some(message.blocks.clone()),
        _ => None,
    });
    let items = blocks.unwrap().into_iter().filter_map(|block| match block {
        Block::Native { item, .. } | Block::Annotated { item, .. } => Some(item),
        _ => None,
    });
    items.collect()
}

fn last_body(daemon: &TestDaemon) -> Value {
    daemon.requests().last().unwrap().body.clone()
}

const SEARCH: &str = "do: search rust news | cite It is out.";

#[test]
fn anthropic_searches_and_gets_its_blocks_back_unchanged() {
    let daemon = daemon(|_| {});
    daemon.completed("coder", SEARCH);
    let tools = last_body(&daemon)["tools"].clone();
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    assert!(tools.as_array().unwrap().contains(&search), "{tools}");
    let kept = kept(&daemon);
    assert_eq!(kept.len(), 3, "{kept:?}");
    assert_eq!(kept[0]["input"], json!({"query": "rust news"}));
    assert_eq!(kept[1]["content"][0]["encrypted_content"], "ZW5jcnlwdGVk");
    assert_eq!(kept[2]["citations"][0]["encrypted_index"], "aW5kZXg=");
    assert_eq!(daemon.count("coder", Kind::ToolStarted), 0);
    daemon.kill_runtime("coder");
    daemon.completed("coder", "do: say next");
    let content = last_body(&daemon)["messages"][1]["content"].clone();
    assert_eq!(content, json!(kept));
    // A reply that the provider paused is continued.
    daemon.completed("coder", "do: cite half | pause ;; say whole");
    let events = daemon.events("coder");
    let paused = events
        .iter()
        .filter(|event| matches!(&event.body, Body::Notice(it) if it.cause == NoticeCause::Paused));
    assert_eq!(paused.count(), 1);
    daemon.verify();
}

#[test]
fn openai_searches_and_gets_its_items_back_unchanged() {
    let daemon = daemon(of("openai", "gpt-5"));
    daemon.completed("coder", SEARCH);
    let tools = last_body(&daemon)["tools"].clone();
    let search = json!({"type": "web_search"});
    assert!(tools.as_array().unwrap().contains(&search), "{tools}");
    let kept = kept(&daemon);
    assert_eq!(kept[0]["type"], "web_search_call");
    let citation = &kept[1]["content"][0]["annotations"][0];
    assert_eq!(citation["type"], "url_citation");
    daemon.completed("coder", "do: say next");
    let input = last_body(&daemon)["input"].clone();
    assert_eq!(input[1], kept[0]);
    assert_eq!(input[2]["id"], kept[1]["id"]);
    assert_eq!(input[2]["content"][0]["annotations"][0], *citation);
    assert_eq!(daemon.count("coder", Kind::ToolStarted), 0);
    daemon.verify();
}

#[test]
fn gemini_searches_without_functions_and_its_sources_are_kept() {
    let daemon = daemon(of("gemini", "gemini-2.5-flash"));
    daemon.completed("coder", SEARCH);
    assert_eq!(last_body(&daemon)["tools"], json!([{"googleSearch": {}}]));
    let kept = kept(&daemon);
    let sources = &kept[0]["groundingMetadata"]["groundingChunks"];
    assert_eq!(sources[0]["web"]["uri"], "https://found.example/page");
    daemon.completed("coder", "do: say next");
    let contents = last_body(&daemon)["contents"].clone();
    assert_eq!(contents[1]["parts"], json!([{"text": "It is out."}]));
    daemon.verify();
}

#[test]
fn a_provider_without_the_tool_is_refused_before_an_agent_exists() {
    let daemon = daemon(|_| {});
    for (provider, tools, said) in [
        ("openai-chat", "", "Chat Completions"),
        ("ollama", "model: qwen3\n", "Chat Completions"),
        ("gemini", "", "set `tools: []`"),
    ] {
        let file = daemon.work().join("searcher.md");
        let text = format!("---\nprovider: {provider}\n{tools}server_tools: [web_search]\n---\n");
        fs::write(&file, text).unwrap();
        let file = file.display().to_string();
        let refused = daemon.cli(&["create", "searcher", "--file", &file]);
        let error = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(3), "{error}");
        assert!(error.contains(said), "{error}");
    }
    let unknown = "---\nserver_tools: [web_fetch]\n---\n";
    let file = daemon.work().join("searcher.md");
    fs::write(&file, unknown).unwrap();
    let refused = daemon.cli(&["create", "searcher", "--file", &file.display().to_string()]);
    assert_eq!(refused.status.code(), Some(2));
}
