//! `agentd continue`.

use super::test_cli::TestCli;

#[test]
fn a_limited_turn_goes_on_with_a_raised_limit() {
    let cli = TestCli::with_coder();
    cli.ok(&["set", "coder", "limits.max_iterations=1"]);
    let text = cli.refused(5, &["send", "coder", "run `echo x >> effects`"]);
    assert!(text.contains("agentd continue coder"), "{text}");
    cli.ok(&["set", "coder", "limits.max_iterations=9"]);
    cli.ok(&["continue", "coder"]);
    cli.ok(&["wait", "coder"]);
    let text = std::fs::read_to_string(cli.work().join("effects")).unwrap();
    assert_eq!(text, "x\n");
}

#[test]
fn where_nothing_waits_it_says_so() {
    let cli = TestCli::with_coder();
    cli.refused(3, &["continue", "coder"]);
}
