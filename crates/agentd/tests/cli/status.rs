//! `agentd status`.

use super::place::Place;

#[test]
fn of_the_daemon_and_of_an_agent() {
    let place = Place::with_coder();
    let status = place.json(&["status"]);
    assert_eq!(status["daemon"]["agents"], 1);
    assert_eq!(status["phases"]["idle"], 1);
    let out = place.ok(&["status"]);
    assert!(out.contains("1 idle"), "{out}");
    place.ok(&["send", "coder", "run `true`"]);
    let out = place.ok(&["status", "coder"]);
    assert!(out.starts_with("coder is idle\n"), "{out}");
    assert!(out.contains("ended as completed"), "{out}");
}
