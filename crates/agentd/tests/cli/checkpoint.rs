//! `agentd checkpoint`.

use super::place::Place;

#[test]
fn a_label_belongs_to_the_conversation() {
    let place = Place::with_coder();
    let set = place.json(&["checkpoint", "coder", "here"]);
    assert_eq!(set["label"], "here");
    let all = place.json(&["conversations", "coder"]);
    assert!(all["conversations"][0]["labels"]["here"].is_u64(), "{all}");
    let out = place.ok(&["checkpoint", "coder"]);
    assert!(out.starts_with("coder: event "), "{out}");
}
