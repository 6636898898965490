//! `agentd approve`.

use super::place::Place;

/// With an agent that asks before each command, and waits.
pub fn asking() -> Place {
    let place = Place::with_coder();
    let rule = r#"permissions=[{"tool":"shell","decision":"ask"}]"#;
    place.ok(&["set", "coder", rule]);
    let text = place.refused(6, &["send", "coder", "run `echo x >> effects`"]);
    assert!(text.contains("agentd approve coder"), "{text}");
    place
}

#[test]
fn the_call_is_made() {
    let place = asking();
    assert_eq!(place.json(&["show", "coder"])["phase"], "awaiting_approval");
    let text = place.refused(6, &["wait", "coder"]);
    assert!(text.contains("agentd deny coder"), "{text}");
    place.ok(&["approve", "coder"]);
    place.ok(&["wait", "coder"]);
    assert!(place.work().join("effects").exists());
}

#[test]
fn the_first_answer_counts() {
    let place = asking();
    let agent = place.json(&["show", "coder"]);
    let id = agent["approvals"][0]["id"].as_str().unwrap();
    place.ok(&["approve", "coder", id]);
    place.refused(3, &["approve", "coder", id]);
    place.ok(&["wait", "coder"]);
    let text = place.refused(3, &["approve", "coder"]);
    assert!(text.contains("no call of coder waits"), "{text}");
}
