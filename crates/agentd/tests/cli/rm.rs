//! `agentd rm`.

use super::test_cli::TestCli;

#[test]
fn it_is_put_away_and_can_be_looked_at() {
    let cli = TestCli::with_coder();
    cli.ok(&["rm", "coder", "--reason", "the project is over"]);
    assert_eq!(cli.json(&["list"])["total"], 0);
    let archived = cli.json(&["list", "--archived"]);
    assert_eq!(archived["agents"][0]["name"], "coder");
    assert_eq!(cli.json(&["show", "coder"])["archived"], true);
    assert!(cli.ok(&["replay", "coder"]).contains("agent_archived"));
}
