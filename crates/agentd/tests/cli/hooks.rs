//! `agentd hooks`.

use super::test_cli::TestCli;
use serde_json::json;
use std::fs;

fn project(cli: &TestCli, text: &str) {
    fs::create_dir_all(cli.work().join(".agentd")).unwrap();
    fs::write(cli.work().join(".agentd/hooks.json"), text).unwrap();
}

const GUARD: &str = r#"{"hooks": {"PreToolUse": [{"matcher": "shell", "hooks": [
    {"type": "command", "command": "echo 'not this' >&2; exit 2"}]}]}}"#;

#[test]
fn a_directory_hooks_are_listed_tried_and_trusted() {
    let cli = TestCli::with_coder();
    assert_eq!(cli.ok(&["hooks", "list"]), "no hooks\n");
    project(&cli, GUARD);
    let listed = cli.ok(&["hooks", "list", "coder"]);
    assert!(
        listed.contains("untrusted") && listed.contains("agentd trust"),
        "{listed}"
    );
    assert_eq!(
        cli.ok(&["hooks", "test", "PreToolUse"]),
        "no hook matches\n"
    );
    let shown = cli.json(&["trust", "--show"]);
    assert_eq!(shown["files"][0]["trusted"], false);
    let hash = shown["hash"].as_str().unwrap();
    cli.refused(3, &["trust", "--hash", "of-another-content"]);
    let trusted = cli.ok(&["trust", "--hash", hash]);
    assert!(
        trusted.contains("trusted in its current state"),
        "{trusted}"
    );
    let tested = cli.json(&["hooks", "test", "PreToolUse", "--agent", "coder"]);
    assert_eq!(tested["verdict"]["decision"], "deny");
    assert_eq!(tested["verdict"]["reason"], "not this");
    let set = [
        "hooks",
        "test",
        "PreToolUse",
        "--set",
        "tool_name=read_file",
    ];
    assert_eq!(cli.ok(&set), "no hook matches\n");
    let status = cli.ok(&["show", "coder"]);
    assert!(!status.contains("not trusted"), "{status}");
    cli.ok(&["untrust"]);
    assert_eq!(
        cli.json(&["hooks", "list"])["hooks"][0]["state"],
        "untrusted"
    );
    let shown = cli.ok(&["show", "coder"]);
    assert!(shown.contains("hooks.json"), "{shown}");
}

#[test]
fn a_file_with_errors_is_not_called_good() {
    let cli = TestCli::with_coder();
    project(&cli, r#"{"hooks": {"PreToolUs": []}}"#);
    let ran = cli.run(&["hooks", "check"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.ends_with("hooks.json: 1 error\n"), "{}", ran.out);
    project(&cli, GUARD);
    let checked = cli.ok(&["hooks", "check"]);
    assert!(checked.ends_with("hooks.json: ok\n"), "{checked}");
}

#[test]
fn a_hook_of_an_unknown_event_is_shown() {
    let cli = TestCli::with_coder();
    fs::write(
        cli.home().join("hooks.json"),
        GUARD.replace("PreToolUse", "PreToolUs"),
    )
    .unwrap();
    let shown = cli.ok(&["show", "coder"]);
    assert!(
        shown.contains("unknown event `PreToolUs`") && shown.contains("did you mean `PreToolUse`?"),
        "{shown}"
    );
    assert!(cli.log().contains("hook ignored"), "{}", cli.log());
    // It stays harmless: calls run.
    cli.ok(&["send", "coder", "run `true`"]);
    let file = cli.work().join("guarded.md");
    fs::write(
        &file,
        "---\nprovider: demo\nhooks:\n  PreToolUs: []\n---\nHi.\n",
    )
    .unwrap();
    fs::remove_file(cli.home().join("hooks.json")).unwrap();
    cli.ok(&["create", "guarded", "--file", "guarded.md"]);
    let shown = cli.ok(&["show", "guarded"]);
    assert!(shown.contains("unknown event `PreToolUs`"), "{shown}");
}

#[test]
fn a_file_is_checked_with_a_hint() {
    let cli = TestCli::new();
    let file = cli.work().join("hooks.json");
    fs::write(&file, r#"{"hooks": {"PreToolUs": []}}"#).unwrap();
    let ran = cli.run(&["hooks", "check", "hooks.json"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.out.contains("did you mean `PreToolUse`?"),
        "{}",
        ran.out
    );
    fs::write(&file, GUARD).unwrap();
    assert_eq!(
        cli.ok(&["hooks", "check", "hooks.json"]),
        "hooks.json: 1 handler\n"
    );
    assert_eq!(
        cli.json(&["hooks", "check", "hooks.json"])["problems"],
        json!([])
    );
    let ran = cli.run(&["hooks", "test", "PreToolUs"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("did you mean"), "{}", ran.err);
}

#[test]
fn trust_in_a_skill_is_withdrawn_too() {
    let cli = TestCli::with_coder();
    let skill = cli.work().join(".agents/skills/release");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "---\ndescription: x\n---\nSay it.").unwrap();
    let is_trusted = || cli.json(&["trust", "--show"])["files"][0]["trusted"].clone();
    cli.ok(&["trust"]);
    assert_eq!(is_trusted(), true);
    cli.ok(&["untrust"]);
    assert_eq!(is_trusted(), false);
}

/// The system prompt of a conversation keeps the list of skills that it began with.
#[test]
fn trust_says_when_a_new_skill_counts() {
    let cli = TestCli::with_coder();
    project(&cli, GUARD);
    let is_told = || cli.ok(&["trust"]).contains("next: agentd reset NAME");
    assert!(!is_told(), "hooks count at once");
    let skill = cli.work().join(".agents/skills/release");
    fs::create_dir_all(&skill).unwrap();
    let skill = skill.join("SKILL.md");
    fs::write(&skill, "---\ndescription: x\n---\nSay it.").unwrap();
    assert!(is_told());
    assert!(!is_told(), "it is trusted already");
    // The model is told of a change of a skill that it knows.
    fs::write(&skill, "---\ndescription: x\n---\nSay more.").unwrap();
    assert!(!is_told());
    let untrusted = cli.json(&["untrust"]);
    assert_eq!(untrusted.get("new_skills"), None);
    let path = skill.canonicalize().unwrap();
    assert_eq!(cli.json(&["trust"])["new_skills"], json!([path]));
}
