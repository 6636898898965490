//! `agentd replay`.

use super::test_cli::TestCli;

#[test]
fn all_agents_in_the_order_of_their_commits() {
    let cli = TestCli::with_coder();
    cli.ok(&["create", "other", "--provider", "demo"]);
    cli.ok(&["send", "coder", "run `true`"]);
    let all = cli.lines(&["replay"]);
    let cursors: Vec<u64> = all
        .iter()
        .map(|event| event["cursor"].as_u64().unwrap())
        .collect();
    assert!(cursors.is_sorted_by(|a, b| a < b), "{cursors:?}");
    let half = cursors[cursors.len() / 2];
    let rest = cli.lines(&["replay", "--since", &half.to_string()]);
    let rest: Vec<u64> = rest
        .iter()
        .map(|event| event["cursor"].as_u64().unwrap())
        .collect();
    assert_eq!(rest, cursors[cursors.len() / 2 + 1..]);
}

#[test]
fn one_agent_from_a_number_on() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `true`"]);
    let events = cli.lines(&["replay", "coder", "--since", "5"]);
    assert_eq!(events[0]["seq"], 6);
    let out = cli.ok(&["replay", "coder"]);
    assert!(out.contains("agent_created"), "{out}");
}
