//! `agentd deny`.

use super::approve::asking;

#[test]
fn the_call_is_not_made_and_the_turn_goes_on() {
    let place = asking();
    place.ok(&["deny", "coder"]);
    place.ok(&["wait", "coder"]);
    assert!(!place.work().join("effects").exists());
    let out = place.ok(&["logs", "coder"]);
    assert!(out.contains("It was refused"), "{out}");
}
