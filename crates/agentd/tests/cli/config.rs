//! `agentd config`.

use super::test_cli::TestCli;

#[test]
fn each_value_says_where_it_comes_from_and_no_key_is_shown() {
    let cli = TestCli::new();
    let file = "[providers.lab]\nwire = \"openai_chat\"\nbase_url = \"http://lab.example/v1\"\n";
    std::fs::write(cli.home().join("config.toml"), file).unwrap();
    let mut command = cli.command(&["config", "--json"]);
    command.env("OPENAI_API_KEY", "sk-secret");
    command.env("OPENAI_BASE_URL", "http://proxy.example/v1");
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("sk-secret"), "{text}");
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    let from = |key: &str| {
        let settings = all["settings"].as_array().unwrap();
        let found = settings
            .iter()
            .find(|setting| setting["key"] == key)
            .unwrap();
        found["from"].as_str().unwrap().to_owned()
    };
    assert_eq!(from("home"), "AGENTD_HOME");
    assert_eq!(from("providers.lab.base_url"), "config.toml");
    assert_eq!(from("providers.openai.base_url"), "OPENAI_BASE_URL");
    assert_eq!(from("providers.openai.key"), "OPENAI_API_KEY");
    assert_eq!(from("providers.anthropic.base_url"), "built in");
    // It is about files and variables alone.
    assert!(cli.daemon_pid().is_none());
}

#[test]
fn a_mistake_in_the_file_is_named() {
    let cli = TestCli::new();
    std::fs::write(cli.home().join("config.toml"), "[providrs.lab]\n").unwrap();
    let text = cli.refused(2, &["config"]);
    assert!(text.contains("did you mean `providers`?"), "{text}");
}

/// The journal shows what an agent runs with, wherever that was chosen.
#[test]
fn defaults_of_agents_are_kept_with_the_agent() {
    let cli = TestCli::new();
    let file = "[agents]\napproval = \"always\"\n\
                permissions = [{ tool = \"fetch_url\", decision = \"deny\" }]\n";
    std::fs::write(cli.home().join("config.toml"), file).unwrap();
    cli.ok(&["create", "coder", "--provider", "demo"]);
    let spec = cli.json(&["show", "coder", "--spec"]);
    assert_eq!(spec["approval"], "always");
    assert_eq!(spec["permissions"][0]["tool"], "fetch_url");
    // By AGENTD_SANDBOX, which the tests have.
    assert_eq!(spec["sandbox"], "full-access");
    cli.ok(&[
        "create",
        "other",
        "--provider",
        "demo",
        "--approval",
        "never",
    ]);
    let spec = cli.json(&["show", "other", "--spec"]);
    assert_eq!(spec["approval"], "never");
}
