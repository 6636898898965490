//! `agentd context`.

use super::test_cli::TestCli;
use std::fs;

#[test]
fn it_shows_what_the_model_is_given_and_how_much_it_is() {
    let cli = TestCli::with_coder();
    fs::write(cli.work().join("AGENTS.md"), "The word is xyzzy.\n").unwrap();
    let before = cli.ok(&["context", "coder"]);
    assert!(
        before.contains("no prompt yet") && !before.contains("PART"),
        "{before}"
    );
    cli.ok(&["send", "coder", "run `true`"]);
    let shown = cli.ok(&["context", "coder"]);
    for text in [
        "system prompt",
        "tools",
        "prompts",
        "replies",
        "results",
        "AGENTS.md (19 bytes)",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert!(!shown.contains("xyzzy"), "{shown}");
    let full = cli.ok(&["context", "coder", "--full"]);
    assert!(
        full.contains("The word is xyzzy.") && full.contains("Tool shell"),
        "{full}"
    );
    let json = cli.json(&["context", "coder"]);
    let parts = json["parts"].as_array().unwrap();
    let sum: u64 = parts
        .iter()
        .filter_map(|part| part["tokens"].as_u64())
        .sum();
    assert_eq!(json["tokens"].as_u64(), Some(sum));
    assert!(json["system"].as_str().unwrap().contains("xyzzy"));
    assert_eq!(json["instructions"][0]["bytes"], 19);
}

/// A skill of a project is not used before the user trusts it, and the user is told so.
#[test]
fn it_names_the_files_that_are_not_trusted() {
    let cli = TestCli::with_coder();
    let skill = cli.work().join(".agents/skills/release/SKILL.md");
    fs::create_dir_all(skill.parent().unwrap()).unwrap();
    fs::write(
        &skill,
        "---\nname: release\ndescription: How.\n---\nTag it.\n",
    )
    .unwrap();
    let shown = cli.ok(&["context", "coder"]);
    assert!(
        shown.contains("not used: ") && shown.contains("SKILL.md is not trusted (agentd trust "),
        "{shown}"
    );
    cli.ok(&["trust", &cli.work().display().to_string()]);
    let shown = cli.ok(&["context", "coder"]);
    assert!(!shown.contains("not trusted"), "{shown}");
}
