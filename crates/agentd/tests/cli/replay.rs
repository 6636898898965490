//! `agentd replay`.

use super::test_cli::TestCli;
use serde_json::Value;
use std::collections::HashSet;

#[test]
fn all_agents_in_the_order_of_their_commits() {
    let cli = TestCli::with_coder();
    cli.ok(&["create", "other", "--provider", "demo"]);
    cli.ok(&["send", "coder", "run `true`"]);
    let all = cli.lines(&["replay"]);
    let cursors = |events: &[Value]| -> Vec<String> {
        let cursor = |event: &Value| event["cursor"].as_str().unwrap().to_owned();
        events.iter().map(cursor).collect()
    };
    let all = cursors(&all);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    let half = all.len() / 2;
    let rest = cli.lines(&["replay", "--since", &all[half]]);
    // What commands changed may be recorded in between.
    let rest = cursors(&rest);
    assert!(rest.starts_with(&all[half + 1..]), "{all:?} {rest:?}");
    let told = cli.refused(2, &["replay", "--since", "no cursor"]);
    assert!(told.contains("not a cursor"), "{told}");
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
