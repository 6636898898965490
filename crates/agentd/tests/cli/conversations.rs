//! `agentd conversations`.

use super::place::Place;

#[test]
fn branches_are_drawn() {
    let place = Place::with_coder();
    place.ok(&["reset", "coder"]);
    place.ok(&["reset", "coder", "--undo"]);
    place.ok(&["reset", "coder"]);
    let all = place.json(&["conversations", "coder"]);
    assert_eq!(all["conversations"].as_array().unwrap().len(), 3);
    let out = place.ok(&["conversations", "coder"]);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("● 1  "), "{out}");
    assert!(lines[1].starts_with("├─● 2  "), "{out}");
    assert!(lines[2].starts_with("● 3  "), "{out}");
    assert!(lines[2].ends_with("← current"), "{out}");
}
