//! `agentd restart`.

use super::test_cli::{TestCli, ended};

#[test]
fn the_turn_goes_on_in_the_new_process() {
    let cli = TestCli::with_coder();
    let child = cli.start(&["send", "coder", "run `sleep 1; echo x >> effects`"]);
    cli.until_tool("coder");
    let before = cli.json(&["show", "coder"])["process"]["pid"].clone();
    cli.ok(&["restart", "coder"]);
    let ran = ended(child);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_ne!(cli.json(&["show", "coder"])["process"]["pid"], before);
    let text = std::fs::read_to_string(cli.work().join("effects")).unwrap();
    assert_eq!(text, "x\n");
}
