//! `agentd models`.

use super::test_cli::TestCli;
use agentd_testkit::model::FakeModel;
use serde_json::{Value, json};

fn named<'a>(all: &'a Value, model: &str) -> &'a Value {
    let models = all["models"].as_array().unwrap();
    let found = models.iter().find(|it| it["model"] == model);
    found.unwrap_or_else(|| panic!("{model}: {all}"))
}

#[test]
fn models_have_windows_prices_keys_and_a_default() {
    let cli = TestCli::new();
    let mut command = cli.command(&["models", "--json"]);
    let output = command.env("OPENAI_API_KEY", "k").output().unwrap();
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let gpt = named(&all, "gpt-5");
    assert_eq!(gpt["provider"], "openai");
    assert_eq!(
        (&gpt["default"], &gpt["has_key"]),
        (&json!(true), &json!(true))
    );
    assert!(gpt["window"].as_u64().unwrap() > 100_000, "{gpt}");
    assert!(gpt["input_usd"].as_f64().unwrap() > 0.0, "{gpt}");
    let claude = named(&all, "claude-sonnet-5-5");
    assert_eq!(claude["has_key"], false);
    assert_eq!(claude["default"], false);
    assert_eq!(claude["provider_default"], true);
    assert_eq!(
        (&claude["images"], &claude["pdf"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(named(&all, "demo")["has_key"], Value::Null);
    let models = all["models"].as_array().unwrap();
    assert!(models.iter().all(|it| it["provider"] != "openai-chat"));
    assert!(cli.daemon_pid().is_none(), "it needs no daemon");

    let text = cli.ok(&["models", "--provider", "openai-chat"]);
    let line = text
        .lines()
        .find(|line| line.starts_with("gpt-5 "))
        .unwrap();
    assert!(line.contains("openai-chat") && line.contains('$'), "{text}");
    assert!(!text.contains("claude"), "{text}");
    let text = cli.refused(2, &["models", "--provider", "opnai"]);
    assert!(text.contains("openrouter"), "{text}");
}

#[test]
fn models_of_the_file_and_its_default_are_listed() {
    let cli = TestCli::new();
    let file = "[agents]\nprovider = \"lab\"\nmodel = \"huge\"\n[models.big]\nwindow = 5000\n\
                [providers.lab]\nwire = \"openai_chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
                key_env = \"LAB_KEY\"\n";
    std::fs::write(cli.home().join("config.toml"), file).unwrap();
    let all = cli.json(&["models"]);
    let huge = named(&all, "huge");
    assert_eq!(
        (&huge["provider"], &huge["default"]),
        (&json!("lab"), &json!(true))
    );
    assert_eq!(huge["window"], Value::Null);
    let big = named(&all, "big");
    assert_eq!(
        (&big["provider"], &big["window"]),
        (&Value::Null, &json!(5000))
    );
    let lab = cli.json(&["models", "--provider", "lab"]);
    assert_eq!(named(&lab, "big")["provider"], "lab");
    assert_eq!(lab["models"].as_array().unwrap().len(), 2);
}

#[test]
fn a_server_without_a_key_is_asked_for_its_models() {
    let cli = TestCli::new();
    let model = FakeModel::start().unwrap();
    let mut command = cli.command(&["models", "--provider", "ollama", "--json"]);
    let output = command
        .env("OLLAMA_HOST", model.address().to_string())
        .output()
        .unwrap();
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(named(&all, "fake")["provider"], "ollama");
    drop(model);
    let mut command = cli.command(&["models", "--provider", "ollama"]);
    let output = command.env("OLLAMA_HOST", "127.0.0.1:9").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("did not list its models"), "{text}");
}
