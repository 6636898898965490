//! `agentd approve`.

use super::test_cli::TestCli;

/// With an agent that asks before each command, and waits.
pub fn asking() -> TestCli {
    let cli = TestCli::with_coder();
    let rule = r#"permissions=[{"tool":"shell","decision":"ask"}]"#;
    cli.ok(&["set", "coder", rule]);
    let text = cli.refused(6, &["send", "coder", "run `echo x >> effects`"]);
    assert!(text.contains("agentd approve coder"), "{text}");
    cli
}

#[test]
fn the_call_is_made() {
    let cli = asking();
    assert_eq!(cli.json(&["show", "coder"])["phase"], "awaiting_approval");
    let text = cli.refused(6, &["wait", "coder"]);
    assert!(text.contains("agentd deny coder"), "{text}");
    cli.ok(&["approve", "coder"]);
    cli.ok(&["wait", "coder"]);
    assert!(cli.work().join("effects").exists());
}

#[test]
fn the_first_answer_counts() {
    let cli = asking();
    let agent = cli.json(&["show", "coder"]);
    let id = agent["approvals"][0]["id"].as_str().unwrap();
    cli.ok(&["approve", "coder", id]);
    cli.refused(3, &["approve", "coder", id]);
    cli.ok(&["wait", "coder"]);
    let text = cli.refused(3, &["approve", "coder"]);
    assert!(text.contains("no call of coder is waiting"), "{text}");
}

#[test]
fn what_a_rule_allows_is_said() {
    // No rule overrules an ask rule.
    let cli = TestCli::with_coder();
    cli.ok(&["set", "coder", "approval=always"]);
    cli.refused(6, &["send", "coder", "run `echo x`"]);
    let text = cli.ok(&["approve", "coder", "--always"]);
    assert!(text.contains("which allows this call"), "{text}");
}
