//! `agentd compact`.

use super::place::Place;

#[test]
fn what_was_said_is_summed_up() {
    let place = Place::with_coder();
    let nothing = place.ok(&["compact", "coder"]);
    assert!(nothing.contains("nothing to compact"), "{nothing}");
    place.ok(&["send", "coder", "run `echo one`"]);
    let out = place.ok(&["compact", "coder", "--instructions", "keep the names"]);
    assert!(out.contains("coder is compacted to about "), "{out}");
    let id = "01a1de8c-1d87-731f-acc4-996921d41571";
    place.ok(&["send", "coder", "run `echo two`"]);
    let made = place.json(&["compact", "coder", "--op", id]);
    assert_eq!(
        (&made["outcome"], &made["op"]),
        (&"compacted".into(), &id.into())
    );
    let shown = place.json(&["show", "coder", "--conversation", "1"]);
    assert_eq!(shown["compactions"], 2);
    place.ok(&["stop", "coder"]);
    place.refused(3, &["compact", "coder"]);
}
