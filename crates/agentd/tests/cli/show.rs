//! `agentd show`.

use super::place::Place;

#[test]
fn the_words_that_scripts_rely_on() {
    let place = Place::with_coder();
    place.ok(&["send", "coder", "run `echo hello`"]);
    let agent = place.json(&["show", "coder"]);
    for key in [
        "id",
        "name",
        "mode",
        "phase",
        "process",
        "generation",
        "conversation",
        "model",
        "usage",
        "started_at",
        "completed_at",
        "summary",
        "error",
    ] {
        assert!(agent.get(key).is_some(), "{key}: {agent}");
    }
    assert_eq!(agent["conversation"]["turns"], 1);
    let out = place.ok(&["show", "coder"]);
    assert!(out.contains("phase         idle\n"), "{out}");
}

#[test]
fn the_spec_is_a_file_that_apply_takes() {
    let place = Place::with_coder();
    let file = place.work().join("coder.md");
    std::fs::write(&file, place.ok(&["show", "coder", "--spec"])).unwrap();
    assert_eq!(place.ok(&["apply", "-f", "coder.md"]), "coder: unchanged\n");
}
