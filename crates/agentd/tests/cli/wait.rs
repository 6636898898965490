//! `agentd wait`.

use super::place::Place;

#[test]
fn until_there_is_nothing_left_to_do() {
    let place = Place::with_coder();
    place.ok(&["wait", "coder"]);
    place.ok(&["send", "coder", "--no-wait", "run `sleep 0.5`"]);
    place.ok(&["send", "coder", "--no-wait", "run `echo x >> effects`"]);
    let agent = place.json(&["wait", "coder"]);
    assert_eq!(agent["phase"], "idle");
    assert_eq!(agent["queued"], 0);
    assert!(place.work().join("effects").exists());
}

#[test]
fn a_timeout_exits_with_124() {
    let place = Place::with_coder();
    place.ok(&["send", "coder", "--no-wait", "run `sleep 100`"]);
    let text = place.refused(124, &["wait", "coder", "--timeout", "200ms"]);
    assert!(text.contains("not done yet"), "{text}");
    place.ok(&["interrupt", "coder"]);
    place.refused(130, &["wait", "coder"]);
}

#[test]
fn a_prompt_that_never_was_is_not_found() {
    let place = Place::with_coder();
    let id = "01a1de8c-1d87-731f-acc4-996921d41571";
    let text = place.refused(7, &["wait", "coder", id]);
    assert!(text.contains(id), "{text}");
}
