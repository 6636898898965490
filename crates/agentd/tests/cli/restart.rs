//! `agentd restart`.

use super::place::{Place, ended};

#[test]
fn the_turn_goes_on_in_the_new_process() {
    let place = Place::with_coder();
    let child = place.start(&["send", "coder", "run `sleep 1; echo x >> effects`"]);
    place.until_tool("coder");
    let before = place.json(&["show", "coder"])["process"]["pid"].clone();
    place.ok(&["restart", "coder"]);
    let ran = ended(child);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_ne!(place.json(&["show", "coder"])["process"]["pid"], before);
    let text = std::fs::read_to_string(place.work().join("effects")).unwrap();
    assert_eq!(text, "x\n");
}
