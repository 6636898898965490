//! `agentd wait`.

use super::test_cli::TestCli;

#[test]
fn until_there_is_nothing_left_to_do() {
    let cli = TestCli::with_coder();
    cli.ok(&["wait", "coder"]);
    cli.ok(&["send", "coder", "--no-wait", "run `sleep 0.5`"]);
    cli.ok(&["send", "coder", "--no-wait", "run `echo x >> effects`"]);
    let agent = cli.json(&["wait", "coder"]);
    assert_eq!(agent["phase"], "idle");
    assert_eq!(agent["queued"], 0);
    assert!(cli.work().join("effects").exists());
}

#[test]
fn a_timeout_exits_with_124() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "--no-wait", "run `sleep 100`"]);
    let text = cli.refused(124, &["wait", "coder", "--timeout", "200ms"]);
    assert!(text.contains("timed out waiting for coder"), "{text}");
    cli.ok(&["interrupt", "coder"]);
    cli.refused(130, &["wait", "coder"]);
}

#[test]
fn a_prompt_that_never_was_is_not_found() {
    let cli = TestCli::with_coder();
    let id = "01a1de8c-1d87-731f-acc4-996921d41571";
    let text = cli.refused(7, &["wait", "coder", id]);
    assert!(text.contains(id), "{text}");
}
