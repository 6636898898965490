//! A name that nobody has: every verb says so, with what was perhaps meant, and creates nothing.

use super::place::Place;

#[test]
fn an_unknown_agent_is_not_found() {
    let place = Place::with_coder();
    let verbs: [&[&str]; 22] = [
        &["send", "codr", "hello"],
        &["wait", "codr"],
        &["interrupt", "codr"],
        &["continue", "codr"],
        &["approve", "codr"],
        &["deny", "codr"],
        &["reset", "codr"],
        &["start", "codr"],
        &["stop", "codr"],
        &["restart", "codr"],
        &["status", "codr"],
        &["show", "codr"],
        &["logs", "codr"],
        &["replay", "codr"],
        &["conversations", "codr"],
        &["tasks", "codr"],
        &["checkpoint", "codr"],
        &["set", "codr", "model=x"],
        &["rename", "codr", "other"],
        &["export", "codr"],
        &["rm", "codr"],
        &["purge", "codr", "--yes"],
    ];
    for args in verbs {
        let text = place.refused(3, args);
        assert!(text.contains("no agent `codr`"), "{args:?}: {text}");
        assert!(text.contains("did you mean `coder`?"), "{args:?}: {text}");
    }
    assert_eq!(place.json(&["list"])["total"], 1);
}
