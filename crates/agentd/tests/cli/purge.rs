//! `agentd purge`.

use super::place::Place;

#[test]
fn it_says_what_first_and_asks() {
    let place = Place::with_coder();
    place.ok(&["send", "coder", "run `echo hello`"]);
    let text = place.refused(3, &["purge", "coder", "--yes"]);
    assert!(text.contains("agentd rm coder"), "{text}");
    place.ok(&["rm", "coder"]);
    let dry = place.json(&["purge", "coder", "--dry-run"]);
    assert_eq!(dry["conversations"].as_array().unwrap().len(), 1, "{dry}");
    let ran = place.run(&["purge", "coder"]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(
        ran.err.contains("would lose for good: 1 conversation"),
        "{ran:#?}"
    );
    assert!(ran.err.contains("say --yes"), "{ran:#?}");
    assert!(place.ok(&["logs", "coder", "--all"]).contains("hello"));
}

#[test]
fn one_conversation_is_gone_for_good() {
    let place = Place::with_coder();
    place.ok(&["send", "coder", "run `echo hello`"]);
    let old = place.json(&["reset", "coder"])["old"].clone();
    let old = old.as_str().unwrap();
    let gone = place.json(&["purge", "coder", "--conversation", old, "--yes"]);
    assert_eq!(gone["conversations"][0], old);
    assert!(!place.ok(&["logs", "coder", "--all"]).contains("hello"));
    place.refused(3, &["reset", "coder", "--undo"]);
}
