//! `agentd start`.

use super::place::Place;

#[test]
fn what_waited_for_a_stopped_agent_is_done() {
    let place = Place::with_coder();
    place.ok(&["stop", "coder"]);
    let sent = place.json(&["send", "coder", "--no-wait", "run `echo hello`"]);
    assert_eq!(place.json(&["show", "coder"])["queued"], 1);
    let agent = place.json(&["start", "coder"]);
    assert_eq!(agent["stopped"], false);
    let out = place.ok(&["wait", "coder", sent["prompt"].as_str().unwrap()]);
    assert!(out.contains("hello"), "{out}");
}
