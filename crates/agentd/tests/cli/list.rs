//! `agentd list`.

use super::test_cli::TestCli;

#[test]
fn an_empty_list_says_how_to_begin() {
    let cli = TestCli::new();
    assert!(cli.ok(&["list"]).contains("agentd create NAME"));
    let list = cli.json(&["list"]);
    assert_eq!(list["agents"], serde_json::json!([]));
    assert_eq!(list["total"], 0);
    assert!(list["next"].is_null());
}

#[test]
fn pages_follow_one_another() {
    let cli = TestCli::new();
    for name in ["a1", "a2", "a3", "b1"] {
        cli.ok(&["create", name, "--provider", "demo"]);
    }
    let first = cli.json(&["list", "--by-name", "-n", "2"]);
    assert_eq!(first["total"], 4);
    let next = first["next"].as_str().unwrap();
    let second = cli.json(&["list", "--by-name", "-n", "2", "--after", next]);
    let names = |list: &serde_json::Value| -> Vec<String> {
        let agents = list["agents"].as_array().unwrap().iter();
        agents
            .map(|agent| agent["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        [names(&first), names(&second)].concat(),
        ["a1", "a2", "a3", "b1"]
    );
    assert_eq!(names(&cli.json(&["list", "--prefix", "b"])), ["b1"]);
    let out = cli.ok(&["list", "-n", "1"]);
    assert!(out.contains("1 of 4 agents; more with --all"), "{out}");
    cli.ok(&["stop", "a2"]);
    assert_eq!(names(&cli.json(&["list", "--phase", "stopped"])), ["a2"]);
    assert_eq!(cli.run(&["list", "--phase", "asleep"]).code, Some(2));
}

#[test]
fn a_line_says_what_the_agent_is_about() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `echo hello`"]);
    let line = cli.json(&["list"])["agents"][0].clone();
    assert_eq!(line["title"], "run `echo hello`");
    assert_eq!(
        (&line["model"], &line["provider"]),
        (&serde_json::Value::Null, &"demo".into())
    );
    assert_eq!(line["cwd"], cli.work().display().to_string());
    let agent = cli.json(&["show", "coder"]);
    assert!(line["summary"].is_string(), "{line}");
    assert_eq!(line["summary"], agent["summary"]);
    let out = cli.ok(&["list"]);
    // HOME of the test is the parent of the working directory.
    for words in [
        "TITLE",
        "DIRECTORY",
        "LAST WORDS",
        "MODEL",
        "run `echo hello`",
        " ~/",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    // The title is that of the current conversation.
    cli.ok(&["reset", "coder"]);
    assert!(cli.json(&["list"])["agents"][0]["title"].is_null());
}

/// The settings name only the provider, whose default model it is.
#[test]
fn the_default_model_of_the_provider_is_named() {
    let cli = TestCli::with_coder();
    let spec = cli.json(&["show", "coder", "--spec"]);
    assert!(spec["model"].is_null(), "{spec}");
    let show = cli.ok(&["show", "coder"]);
    let model = show.lines().find(|line| line.starts_with("model"));
    assert_eq!(
        model.map(|line| line.replace(' ', "")).as_deref(),
        Some("modeldemo")
    );
}
