//! `agentd interrupt`.

use super::test_cli::TestCli;

#[test]
fn the_turn_ends_and_the_next_prompt_is_answered() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "--no-wait", "run `sleep 100`"]);
    cli.until_tool("coder");
    cli.ok(&["interrupt", "coder"]);
    let agent = cli.until_phase("coder", "idle");
    assert_eq!(agent["last_turn"]["status"], "interrupted");
    let out = cli.ok(&["send", "coder", "run `echo hello`"]);
    assert!(out.contains("hello"), "{out}");
}
