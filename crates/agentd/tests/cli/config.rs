//! `agentd config`.

use super::test_cli::TestCli;
use serde_json::Value;
use std::io::Write as _;

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
    let file = "[agents]\napproval = \"always\"\nreasoning = \"low\"\n\
                permissions = [{ tool = \"fetch_url\", decision = \"deny\" }]\n";
    std::fs::write(cli.home().join("config.toml"), file).unwrap();
    cli.ok(&["create", "coder", "--provider", "demo"]);
    let spec = cli.json(&["show", "coder", "--spec"]);
    assert_eq!(spec["approval"], "always");
    assert_eq!(spec["reasoning"], "low");
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
        "--reasoning",
        "high",
    ]);
    let spec = cli.json(&["show", "other", "--spec"]);
    assert_eq!(spec["approval"], "never");
    assert_eq!(spec["reasoning"], "high");
}

fn spec_of(cli: &TestCli, name: &str) -> (serde_json::Value, serde_json::Value) {
    let spec = cli.json(&["show", name, "--spec"]);
    (spec["provider"].clone(), spec["model"].clone())
}

/// The choice is stored with the agent: a later key or default does not change it.
#[test]
fn a_provider_with_a_key_is_chosen_and_stored_with_the_agent() {
    let cli = TestCli::new();
    let create = |name: &str, env: &[(&str, &str)]| {
        let mut command = cli.command(&["create", name]);
        command.envs(env.iter().copied());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    create("by-variable", &[("GEMINI_API_KEY", "k")]);
    assert_eq!(spec_of(&cli, "by-variable"), ("gemini".into(), Value::Null));
    create(
        "of-two",
        &[("GEMINI_API_KEY", "k"), ("OPENAI_API_KEY", "k")],
    );
    assert_eq!(spec_of(&cli, "of-two").0, "openai");

    let mut set = cli.command(&["secret", "set", "ANTHROPIC_API_KEY"]);
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"sk-stored").unwrap();
    drop(writer);
    assert!(set.stdin(reader).output().unwrap().status.success());
    create("by-secret", &[("OPENAI_API_KEY", "k")]);
    assert_eq!(spec_of(&cli, "by-secret").0, "anthropic");
    assert_eq!(spec_of(&cli, "by-variable").0, "gemini");
}

#[test]
fn the_default_provider_and_model_come_from_the_file() {
    let cli = TestCli::new();
    let write = |text: &str| std::fs::write(cli.home().join("config.toml"), text).unwrap();
    write("[agents]\nprovider = \"ollama\"\nmodel = \"qwen3\"\n");
    let mut command = cli.command(&["create", "coder"]);
    let output = command.env("OPENAI_API_KEY", "k").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(spec_of(&cli, "coder"), ("ollama".into(), "qwen3".into()));
    cli.ok(&["create", "other", "--provider", "demo"]);
    assert_eq!(spec_of(&cli, "other"), ("demo".into(), Value::Null));
    write("[agents]\nprovider = \"demo\"\n");
    assert_eq!(
        spec_of(&cli, "coder"),
        ("ollama".into(), "qwen3".into()),
        "the file is for new agents"
    );
    assert!(cli.ok(&["run", "count to 2"]).contains('2'));
    write("[agents]\nprovider = \"olama\"\n");
    let text = cli.refused(2, &["config"]);
    assert!(text.contains("line 2"), "{text}");
    assert!(text.contains("`olama`"), "{text}");
}

#[test]
fn a_key_file_and_a_key_command_count_as_keys() {
    let cli = TestCli::new();
    let write = |text: &str| std::fs::write(cli.home().join("config.toml"), text).unwrap();
    let lab = "[providers.lab]\nwire = \"openai_chat\"\nbase_url = \"http://lab.example/v1\"\n\
               default_model = \"big\"\n";
    write(&format!("{lab}key_command = \"echo key\"\n"));
    cli.ok(&["create", "by-command"]);
    assert_eq!(spec_of(&cli, "by-command").0, "lab");
    let key = cli.work().join("key");
    write(&format!("{lab}key_file = \"{}\"\n", key.display()));
    let text = cli.refused(2, &["create", "by-file"]);
    assert!(text.contains("no model was chosen"), "{text}");
    std::fs::write(&key, "key").unwrap();
    cli.ok(&["create", "by-file"]);
    assert_eq!(spec_of(&cli, "by-file").0, "lab");
}

#[test]
fn without_a_key_the_error_lists_what_would_work() {
    let cli = TestCli::new();
    let text = cli.refused(2, &["run", "hello"]);
    for way in [
        "export ANTHROPIC_API_KEY=…",
        "export OPENAI_API_KEY=…",
        "export GEMINI_API_KEY=…",
        "GOOGLE_API_KEY",
        "export OPENROUTER_API_KEY=…",
        "--provider demo",
        "agentd init",
        "agentd secret set",
    ] {
        assert!(text.contains(way), "{way}: {text}");
    }
    // A local server is only mentioned.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let run = |host: &str| {
        let mut command = cli.command(&["run", "hello"]);
        let output = command.env("OLLAMA_HOST", host).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let text = run(&at);
    assert!(text.contains("--provider ollama --model NAME"), "{text}");
    drop(listener);
    let text = run(&at);
    assert!(!text.contains("ollama"), "{text}");
}

fn setting<'a>(all: &'a Value, key: &str) -> &'a Value {
    let settings = all["settings"].as_array().unwrap();
    let found = settings.iter().find(|setting| setting["key"] == key);
    found.unwrap_or_else(|| panic!("{key} in {all}"))
}

/// The value and the layer of a key.
fn layer(all: &Value, key: &str) -> (String, String) {
    let found = setting(all, key);
    let text = |field: &str| found[field].as_str().unwrap_or("-").to_owned();
    (text("value"), text("from"))
}

fn is(all: &Value, key: &str, value: &str, from: &str) {
    assert_eq!(
        layer(all, key),
        (value.to_owned(), from.to_owned()),
        "{key}"
    );
}

#[test]
fn each_layer_is_named() {
    let cli = TestCli::new();
    let own = "[agents]\nprovider = \"demo\"\nreasoning = \"low\"\nverbosity = \"high\"\n[ui]\ntheme = \"light\"\n\
               [agents.limits]\nmax_tasks = 4\n";
    std::fs::write(cli.home().join("config.toml"), own).unwrap();
    let all = cli.json(&["config"]);
    is(&all, "provider", "demo", "config.toml");
    is(&all, "agents.reasoning", "low", "config.toml");
    is(&all, "agents.verbosity", "high", "config.toml");
    is(&all, "agents.fast", "false", "built in");
    is(&all, "agents.approval", "on-request", "built in");
    is(&all, "agents.sandbox", "full-access", "AGENTD_SANDBOX");
    is(&all, "agents.limits.max_tasks", "4", "config.toml");
    is(&all, "agents.limits.max_iterations", "100", "built in");
    is(&all, "ui.theme", "light", "config.toml");

    // A project's file is shown, and counts once it is trusted.
    let dir = cli.work().canonicalize().unwrap();
    std::fs::create_dir_all(dir.join(".agentd")).unwrap();
    let of_project = "[agents]\napproval = \"always\"\nsandbox = \"read-only\"\nverbosity = \"low\"\n\
                      permissions = [{ tool = \"shell\", pattern = \"git push*\", decision = \"ask\" }]\n\
                      limits = { max_iterations = 9 }\n";
    std::fs::write(dir.join(".agentd/config.toml"), of_project).unwrap();
    let all = cli.json(&["config"]);
    is(&all, "agents.approval", "on-request", "built in");
    let (path, state) = layer(&all, "project");
    assert_eq!(path, dir.join(".agentd/config.toml").display().to_string());
    assert!(
        state.contains("not trusted") && state.contains("agentd trust"),
        "{state}"
    );
    cli.ok(&["trust"]);
    let all = cli.json(&["config"]);
    is(&all, "agents.approval", "always", "project");
    is(&all, "agents.sandbox", "read-only", "project");
    is(&all, "agents.verbosity", "low", "project");
    is(&all, "agents.reasoning", "low", "config.toml");
    is(&all, "agents.permissions", "1 rules", "project");
    is(&all, "agents.limits.max_iterations", "9", "project");
    is(&all, "agents.limits.max_tasks", "4", "config.toml");
    assert_eq!(layer(&all, "project").1, "trusted");

    // An agent file and flags are above it.
    let file = cli.work().join("own.md");
    std::fs::write(
        &file,
        "---\nverbosity: medium\nlimits: {max_iterations: 12}\n---\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let all = cli.json(&["config", "-f", file, "--approval", "never"]);
    is(&all, "agents.verbosity", "medium", "agent file");
    is(&all, "agents.limits.max_iterations", "12", "agent file");
    is(&all, "agents.approval", "never", "flag");

    // An existing agent has its settings in the journal.
    cli.ok(&["create", "coder"]);
    std::fs::write(cli.home().join("config.toml"), "").unwrap();
    let all = cli.json(&["config", "coder"]);
    is(&all, "provider", "demo", "journal");
    is(&all, "approval", "always", "journal");
    is(&all, "limits.max_iterations", "9", "journal");
    is(&all, "limits.max_queue", "100", "built in");
    is(&all, "network", "on", "built in");
    let text = cli.refused(2, &["config", "coder", "--fast"]);
    assert!(text.contains("agentd set"), "{text}");
}

#[test]
fn a_preference_that_the_model_does_not_take_is_named() {
    let cli = TestCli::new();
    let note = |all: &Value, key: &str| setting(all, key)["note"].as_str().map(str::to_owned);
    let options = ["--verbosity", "low", "--fast"];
    let config = |provider: &str, model: &str| {
        let chosen = ["config", "--provider", provider, "--model", model];
        let args: Vec<&str> = chosen.iter().chain(&options).copied().collect();
        cli.json(&args)
    };
    let all = config("anthropic", "claude-sonnet-5-5");
    assert!(note(&all, "agents.fast").unwrap().contains("ignored"));
    assert!(
        note(&all, "agents.verbosity")
            .unwrap()
            .contains("system prompt")
    );
    let all = config("openai", "gpt-5");
    assert_eq!(
        (note(&all, "agents.fast"), note(&all, "agents.verbosity")),
        (None, None)
    );
    cli.ok(&["create", "coder", "--provider", "demo", "--fast"]);
    let text = cli.ok(&["config", "coder"]);
    assert!(
        text.contains("ignored: demo has no faster service"),
        "{text}"
    );
}

#[test]
fn the_theme_of_the_file_colours_the_output() {
    let cli = TestCli::new();
    let shown = |theme: &str, variables: &[(&str, &str)]| {
        let file = format!("[ui]\ntheme = \"{theme}\"\n");
        std::fs::write(cli.home().join("config.toml"), file).unwrap();
        let mut command = cli.command(&["config"]);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    // As on a terminal.
    let forced = [("CLICOLOR_FORCE", "1")];
    assert!(shown("auto", &forced).contains("\u{1b}[2m"));
    assert!(shown("light", &forced).contains("\u{1b}[90m"));
    assert!(!shown("none", &forced).contains('\u{1b}'));
    // Without a terminal, and with NO_COLOR, no theme has colours.
    assert!(!shown("dark", &[]).contains('\u{1b}'));
    let both = [("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")];
    assert!(!shown("dark", &both).contains('\u{1b}'));
}
