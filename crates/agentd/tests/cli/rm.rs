//! `agentd rm`.

use super::place::Place;

#[test]
fn it_is_put_away_and_can_be_looked_at() {
    let place = Place::with_coder();
    place.ok(&["rm", "coder", "--reason", "the project is over"]);
    assert_eq!(place.json(&["list"])["total"], 0);
    let archived = place.json(&["list", "--archived"]);
    assert_eq!(archived["agents"][0]["name"], "coder");
    assert_eq!(place.json(&["show", "coder"])["archived"], true);
    assert!(place.ok(&["replay", "coder"]).contains("agent_archived"));
}
