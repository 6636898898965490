//! `agentd fork`.

use super::place::Place;

#[test]
fn another_goes_on_from_there() {
    let place = Place::with_coder();
    place.ok(&["send", "coder", "run `echo one`"]);
    place.ok(&["checkpoint", "coder", "here"]);
    place.ok(&["send", "coder", "run `echo two`"]);
    let out = place.ok(&["fork", "coder", "other", "--at", "here"]);
    assert!(out.contains("agentd send other"), "{out}");
    place.ok(&["send", "other", "run `echo three`"]);
    let id = "01a1de8c-1d87-731f-acc4-996921d41571";
    let args = ["fork", "coder", "third", "--at", "1", "--op", id];
    let first = place.json(&args);
    assert_eq!(
        (&first["agent"]["id"], &first["repeated"]),
        (&id.into(), &false.into())
    );
    assert_eq!(place.json(&args)["repeated"], true);
    place.refused(3, &["fork", "coder", "other"]);
    assert_eq!(place.json(&["list"])["total"], 3);
}
