//! `agentd start`.

use super::test_cli::TestCli;

#[test]
fn what_waited_for_a_stopped_agent_is_done() {
    let cli = TestCli::with_coder();
    cli.ok(&["stop", "coder"]);
    let sent = cli.json(&["send", "coder", "--no-wait", "run `echo hello`"]);
    assert_eq!(cli.json(&["show", "coder"])["queued"], 1);
    let agent = cli.json(&["start", "coder"]);
    assert_eq!(agent["stopped"], false);
    let out = cli.ok(&["wait", "coder", sent["prompt"].as_str().unwrap()]);
    assert!(out.contains("hello"), "{out}");
}
