//! `agentd rename`.

use super::place::Place;

#[test]
fn the_old_name_still_finds_it() {
    let place = Place::with_coder();
    assert_eq!(
        place.ok(&["rename", "coder", "backend"]),
        "coder is backend now\n"
    );
    assert_eq!(place.json(&["show", "coder"])["name"], "backend");
    place.ok(&["create", "other", "--provider", "demo"]);
    place.refused(3, &["rename", "other", "backend"]);
}

/// An alias blocked its name for ever.
#[test]
fn an_alias_gives_way_and_the_command_says_so() {
    let place = Place::with_coder();
    place.ok(&["rename", "coder", "backend"]);
    let out = place.ok(&["create", "coder", "--provider", "demo"]);
    assert!(out.contains("`coder` was an alias of backend"), "{out}");
    assert_eq!(place.json(&["show", "coder"])["name"], "coder");
    assert_eq!(
        place.json(&["show", "backend"])["aliases"],
        serde_json::json!([])
    );
    place.ok(&["rename", "backend", "server"]);
    let renamed = place.json(&["rename", "coder", "backend"]);
    assert_eq!(renamed["displaced"]["name"], "server", "{renamed}");
}
