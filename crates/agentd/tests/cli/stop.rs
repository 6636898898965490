//! `agentd stop`.

use super::test_cli::TestCli;

#[test]
fn the_turn_ends_as_interrupted() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "--no-wait", "run `sleep 100`"]);
    cli.until_tool("coder");
    let out = cli.ok(&["stop", "coder", "--grace", "1s"]);
    assert!(out.contains("agentd start coder"), "{out}");
    let agent = cli.json(&["show", "coder"]);
    assert_eq!(agent["phase"], "stopped");
    assert_eq!(agent["process"]["state"], "down");
    assert_eq!(agent["last_turn"]["status"], "interrupted");
}
