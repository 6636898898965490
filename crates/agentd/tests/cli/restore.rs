//! `agentd restore`.

use super::place::Place;

#[test]
fn taken_out_again() {
    let place = Place::with_coder();
    let out = place.ok(&["rm", "coder"]);
    assert!(out.contains("agentd restore coder"), "{out}");
    place.refused(3, &["send", "coder", "run `true`"]);
    assert_eq!(place.json(&["restore", "coder"])["archived"], false);
    assert_eq!(place.json(&["list"])["total"], 1);
    place.ok(&["send", "coder", "run `true`"]);
}

#[test]
fn the_one_that_was_put_away_is_meant() {
    let place = Place::with_coder();
    let first = place.json(&["show", "coder"])["id"].clone();
    place.ok(&["rm", "coder"]);
    place.ok(&["create", "coder", "--provider", "demo"]);
    // Its name is another's by now.
    place.refused(3, &["restore", "coder"]);
    place.ok(&["rename", "coder", "newer"]);
    place.ok(&["rm", "newer"]);
    assert_eq!(place.json(&["restore", "coder"])["id"], first);
}
