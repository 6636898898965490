//! `agentd restore`.

use super::place::Place;

#[test]
fn taken_out_again() {
    let place = Place::with_coder();
    let out = place.ok(&["rm", "coder"]);
    assert!(out.contains("agentd restore coder"), "{out}");
    place.refused(7, &["send", "coder", "run `true`"]);
    assert_eq!(place.json(&["restore", "coder"])["archived"], false);
    assert_eq!(place.json(&["list"])["total"], 1);
    place.ok(&["send", "coder", "run `true`"]);
}

/// An agent whose name was taken could not be restored.
#[test]
fn under_another_name_where_its_own_is_taken() {
    let place = Place::with_coder();
    let first = place.json(&["show", "coder"])["id"].clone();
    place.ok(&["rm", "coder"]);
    place.ok(&["create", "coder", "--provider", "demo"]);
    let back = place.json(&["restore", "coder", "--as", "Old-Coder"]);
    assert_eq!((&back["id"], &back["name"]), (&first, &"old-coder".into()));
    assert_ne!(place.json(&["show", "coder"])["id"], first);
    place.ok(&["send", "old-coder", "run `true`"]);
}

#[test]
fn the_one_that_was_put_away_is_meant() {
    let place = Place::with_coder();
    let first = place.json(&["show", "coder"])["id"].clone();
    place.ok(&["rm", "coder"]);
    place.ok(&["create", "coder", "--provider", "demo"]);
    // Its name is another's by now.
    let text = place.refused(3, &["restore", "coder"]);
    assert!(text.contains("--as NAME"), "{text}");
    place.ok(&["rename", "coder", "newer"]);
    place.ok(&["rm", "newer"]);
    assert_eq!(place.json(&["restore", "coder"])["id"], first);
}
