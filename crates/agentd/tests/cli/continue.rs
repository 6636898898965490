//! `agentd continue`.

use super::place::Place;

#[test]
fn a_limited_turn_goes_on_with_a_raised_limit() {
    let place = Place::with_coder();
    place.ok(&["set", "coder", "limits.max_iterations=1"]);
    let text = place.refused(5, &["send", "coder", "run `echo x >> effects`"]);
    assert!(text.contains("agentd continue coder"), "{text}");
    place.ok(&["set", "coder", "limits.max_iterations=9"]);
    place.ok(&["continue", "coder"]);
    place.ok(&["wait", "coder"]);
    let text = std::fs::read_to_string(place.work().join("effects")).unwrap();
    assert_eq!(text, "x\n");
}

#[test]
fn where_nothing_waits_it_says_so() {
    let place = Place::with_coder();
    place.refused(3, &["continue", "coder"]);
}
