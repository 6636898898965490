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
