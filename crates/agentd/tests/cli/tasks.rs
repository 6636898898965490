//! `agentd tasks`.

use super::place::Place;

#[test]
fn none_is_said() {
    let place = Place::with_coder();
    assert_eq!(
        place.ok(&["tasks", "coder"]),
        "coder has no background tasks\n"
    );
    assert_eq!(
        place.json(&["tasks", "coder"])["tasks"],
        serde_json::json!([])
    );
}
