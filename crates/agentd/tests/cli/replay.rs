//! `agentd replay`.

use super::place::Place;

#[test]
fn all_agents_in_the_order_of_their_commits() {
    let place = Place::with_coder();
    place.ok(&["create", "other", "--provider", "demo"]);
    place.ok(&["send", "coder", "run `true`"]);
    let all = place.lines(&["replay"]);
    let cursors: Vec<u64> = all
        .iter()
        .map(|event| event["cursor"].as_u64().unwrap())
        .collect();
    assert!(cursors.is_sorted_by(|a, b| a < b), "{cursors:?}");
    let half = cursors[cursors.len() / 2];
    let rest = place.lines(&["replay", "--since", &half.to_string()]);
    let rest: Vec<u64> = rest
        .iter()
        .map(|event| event["cursor"].as_u64().unwrap())
        .collect();
    assert_eq!(rest, cursors[cursors.len() / 2 + 1..]);
}

#[test]
fn one_agent_from_a_number_on() {
    let place = Place::with_coder();
    place.ok(&["send", "coder", "run `true`"]);
    let events = place.lines(&["replay", "coder", "--since", "5"]);
    assert_eq!(events[0]["seq"], 6);
    let out = place.ok(&["replay", "coder"]);
    assert!(out.contains("agent_created"), "{out}");
}
