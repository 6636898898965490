//! `agentd set`.

use super::place::Place;

#[test]
fn all_of_them_or_none() {
    let place = Place::with_coder();
    place.ok(&["set", "coder", "limits.turn.usd=2.50", "thinking=low"]);
    let spec = place.json(&["show", "coder", "--spec"]);
    assert_eq!(spec["limits"]["turn"]["usd"], 2.5);
    assert_eq!(spec["thinking"], "low");
    let text = place.refused(2, &["set", "coder", "thinking=high", "modle=x"]);
    assert!(text.contains("modle"), "{text}");
    assert_eq!(place.json(&["show", "coder", "--spec"])["thinking"], "low");
    place.ok(&["set", "coder", "thinking="]);
    assert!(place.json(&["show", "coder", "--spec"])["thinking"].is_null());
}
