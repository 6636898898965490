//! `agentd status`.

use super::test_cli::TestCli;

#[test]
fn of_the_daemon_and_of_an_agent() {
    let cli = TestCli::with_coder();
    let status = cli.json(&["status"]);
    assert_eq!(status["daemon"]["agents"], 1);
    assert_eq!(status["phases"]["idle"], 1);
    let out = cli.ok(&["status"]);
    assert!(out.contains("1 idle"), "{out}");
    cli.ok(&["send", "coder", "run `true`"]);
    let out = cli.ok(&["status", "coder"]);
    assert!(out.starts_with("coder is idle\n"), "{out}");
    assert!(out.contains("last turn: completed"), "{out}");
}
