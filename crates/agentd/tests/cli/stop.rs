//! `agentd stop`.

use super::place::Place;

#[test]
fn the_turn_ends_as_interrupted() {
    let place = Place::with_coder();
    place.ok(&["send", "coder", "--no-wait", "run `sleep 100`"]);
    place.until_tool("coder");
    let out = place.ok(&["stop", "coder", "--grace", "1s"]);
    assert!(out.contains("agentd start coder"), "{out}");
    let agent = place.json(&["show", "coder"]);
    assert_eq!(agent["phase"], "stopped");
    assert_eq!(agent["process"]["state"], "down");
    assert_eq!(agent["last_turn"]["status"], "interrupted");
}
