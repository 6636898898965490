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

#[test]
fn a_label_is_not_called_as_something_else() {
    let place = Place::with_coder();
    for label in [
        "init",
        "session-latest",
        "3",
        "0198c5a2-7d1e-7cc3-98c4-dc0c0c07398f",
    ] {
        let error = place.refused(2, &["checkpoint", "coder", label]);
        assert!(
            error.contains(label) && error.contains("another word"),
            "{error}"
        );
    }
}

#[test]
fn a_branch_shows_the_labels_before_it() {
    let place = Place::with_coder();
    place.ok(&["checkpoint", "coder", "here"]);
    place.ok(&["rewind", "coder", "--to", "here"]);
    let shown = place.json(&["show", "coder", "--conversation", "2"]);
    assert!(shown["labels"]["here"].is_u64(), "{shown}");
}
