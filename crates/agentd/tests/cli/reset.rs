//! `agentd reset`.

use super::test_cli::TestCli;

#[test]
fn there_and_back_again() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `echo hello`"]);
    let before = cli.json(&["show", "coder"])["conversation"]["id"].clone();
    let receipt = cli.json(&["reset", "coder"]);
    assert_eq!(receipt["old"], before);
    assert_eq!(receipt["undo"], "agentd reset coder --undo");
    let now = cli.json(&["show", "coder"]);
    assert_eq!(now["conversation"]["id"], receipt["new"]);
    assert_eq!(now["conversation"]["parent"], before);
    let out = cli.ok(&["reset", "coder", "--undo"]);
    assert!(
        out.starts_with("coder is back in conversation 1\n"),
        "{out}"
    );
    assert_eq!(
        cli.json(&["reset", "coder", "--redo"])["new"],
        receipt["new"]
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let cli = TestCli::with_coder();
    let text = cli.refused(3, &["reset", "coder", "--undo"]);
    assert!(text.contains("undo"), "{text}");
    cli.refused(3, &["reset", "coder", "--if-generation", "99"]);
    cli.refused(3, &["reset", "coder", "--mode", "oneshot"]);
    let usage = cli.run(&["reset", "coder", "--grace", "soon"]);
    assert_eq!(usage.code, Some(2));
    assert!(usage.err.contains("such as 500ms"), "{usage:#?}");
}

#[test]
fn a_oneshot_has_none() {
    let cli = TestCli::new();
    let name = cli.ok(&["run", "--provider", "demo", "--detach", "run `true`"]);
    cli.ok(&["wait", name.trim()]);
    let text = cli.refused(3, &["reset", name.trim()]);
    assert!(text.contains("persistent"), "{text}");
}

#[test]
fn an_op_is_made_once() {
    let cli = TestCli::with_coder();
    let op = "01a1de8c-1d87-731f-acc4-996921d41571";
    let first = cli.json(&["reset", "coder", "--op", op]);
    let second = cli.json(&["reset", "coder", "--op", op]);
    assert_eq!(first["new"], second["new"]);
    assert_eq!(cli.json(&["show", "coder"])["generation"], 2);
}

/// The new conversation does not inherit the failure of the old one.
#[test]
fn a_failure_before_it_is_not_shown_and_not_waited_for() {
    let cli = TestCli::with_coder();
    cli.ok(&["set", "coder", "limits.max_iterations=1"]);
    cli.refused(5, &["send", "coder", "run `true`"]);
    cli.refused(5, &["wait", "coder"]);
    let before = cli.json(&["show", "coder"]);
    assert_eq!(before["last_turn"]["status"], "limited", "{before}");
    cli.ok(&["reset", "coder"]);
    cli.ok(&["wait", "coder"]);
    let after = cli.json(&["show", "coder"]);
    for field in [
        "last_turn",
        "completed_at",
        "started_at",
        "error",
        "summary",
    ] {
        assert!(after[field].is_null(), "{field}: {after}");
    }
    assert_eq!(after["phase"], "idle");
    let text = cli.refused(3, &["continue", "coder"]);
    assert!(text.contains("no turn to continue"), "{text}");
}
