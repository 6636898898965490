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
    for key in ["id", "name", "conversation", "usage"] {
        assert_eq!(after[key], before[key], "{key}");
    }
    assert_eq!(after["held"], true);
    assert!(other.ok(&["logs", "coder"]).contains("hello"));
}

/// An agent that was there could not be imported at all.
#[test]
fn under_another_name_it_is_a_copy_with_an_id_of_its_own() {
    let place = Place::with_coder();
    place.ok(&["send", "coder", "run `echo hello`"]);
    place.ok(&["export", "coder", "agent.zst"]);
    let text = place.refused(3, &["import", "agent.zst"]);
    assert!(text.contains("--as NAME"), "{text}");
    let before = place.json(&["show", "coder"]);
    let copy = place.json(&["import", "agent.zst", "--as", "Copy"]);
    assert_eq!(copy["name"], "copy");
    assert_ne!(copy["id"], before["id"]);
    assert_eq!(copy["usage"], before["usage"]);
    assert!(place.ok(&["logs", "copy"]).contains("hello"));
    let events = place.lines(&["logs", "copy", "--all"]);
    let from = events
        .iter()
        .find(|event| event["kind"] == "agent_imported");
    assert_eq!(from.unwrap()["body"]["agent"], before["id"]);
    // Each goes on by itself.
    place.refused(6, &["send", "copy", "run `echo early`"]);
    place.ok(&["start", "copy", "--yes"]);
    place.ok(&["send", "copy", "run `echo more`"]);
    assert_eq!(place.json(&["show", "coder"])["head"], before["head"]);
    place.ok(&["daemon", "stop"]);
    place.ok(&["verify"]);
}

#[test]
fn twice_or_damaged_it_is_refused() {
    let place = Place::with_coder();
    place.ok(&["export", "coder", "agent.zst"]);
    place.refused(3, &["import", "agent.zst"]);
    fs::write(place.work().join("bad.zst"), "no export").unwrap();
    let ran = place.run(&["import", "bad.zst"]);
    assert!(matches!(ran.code, Some(2)), "{ran:#?}");
    place.refused(2, &["import", "missing.zst"]);
}
