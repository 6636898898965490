//! `agentd rewind`.

use super::place::Place;

#[test]
fn to_a_turn_and_back_again() {
    let place = Place::with_coder();
    for word in ["one", "two"] {
        place.ok(&["send", "coder", &format!("run `echo {word}`")]);
    }
    let before = place.json(&["show", "coder"])["conversation"]["id"].clone();
    let out = place.ok(&["rewind", "coder", "--to", "1"]);
    assert!(
        out.starts_with("coder is back at 1, in conversation 2\n"),
        "{out}"
    );
    assert!(out.contains("agentd reset coder --undo"), "{out}");
    let shown = place.json(&["show", "coder", "--conversation", "2"]);
    assert_eq!(
        (&shown["source"], &shown["parent"]),
        (&"rewind".into(), &before)
    );
    assert_eq!(shown["ended"].as_array().unwrap().len(), 1);
    assert_eq!(place.json(&["reset", "coder", "--undo"])["new"], before);
    let receipt = place.json(&["rewind", "coder", "--to", "init", "--conversation", "2"]);
    assert_eq!(receipt["old"], before);
    let drawn = place.ok(&["conversations", "coder"]);
    assert!(drawn.contains("rewind"), "{drawn}");
}

#[test]
fn what_cannot_be_is_refused() {
    let place = Place::with_coder();
    let text = place.refused(7, &["rewind", "coder", "--to", "nowhere"]);
    assert!(
        text.contains("agentd show coder --conversation 1"),
        "{text}"
    );
    place.refused(
        3,
        &["rewind", "coder", "--to", "init", "--if-generation", "9"],
    );
    let usage = place.run(&["rewind", "coder"]);
    assert_eq!(usage.code, Some(2));
}
