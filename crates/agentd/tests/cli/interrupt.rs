//! `agentd interrupt`.

use super::place::Place;

#[test]
fn the_turn_ends_and_the_next_prompt_is_answered() {
    let place = Place::with_coder();
    place.ok(&["send", "coder", "--no-wait", "run `sleep 100`"]);
    place.until_tool("coder");
    place.ok(&["interrupt", "coder"]);
    let agent = place.until_phase("coder", "idle");
    assert_eq!(agent["last_turn"]["status"], "interrupted");
    let out = place.ok(&["send", "coder", "run `echo hello`"]);
    assert!(out.contains("hello"), "{out}");
}
