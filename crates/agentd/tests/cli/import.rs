//! `agentd import`.

use super::place::Place;
use std::fs;

#[test]
fn elsewhere_it_is_the_same_agent() {
    let place = Place::with_coder();
    place.ok(&["send", "coder", "run `echo hello`"]);
    place.ok(&["stop", "coder"]);
    place.ok(&["export", "coder", "agent.zst"]);
    let before = place.json(&["show", "coder"]);
    let other = Place::new();
    fs::copy(
        place.work().join("agent.zst"),
        other.work().join("agent.zst"),
    )
    .unwrap();
    let after = other.json(&["import", "agent.zst"]);
    for key in ["id", "name", "conversation", "usage", "head"] {
        assert_eq!(after[key], before[key], "{key}");
    }
    assert!(other.ok(&["logs", "coder"]).contains("hello"));
}

#[test]
fn twice_or_damaged_it_is_refused() {
    let place = Place::with_coder();
    place.ok(&["export", "coder", "agent.zst"]);
    place.refused(3, &["import", "agent.zst"]);
    fs::write(place.work().join("bad.zst"), "no export").unwrap();
    let ran = place.run(&["import", "bad.zst"]);
    assert!(matches!(ran.code, Some(2 | 3)), "{ran:#?}");
    place.refused(3, &["import", "missing.zst"]);
}
