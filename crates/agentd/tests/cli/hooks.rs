//! `agentd hooks`.

use super::place::Place;
use serde_json::json;
use std::fs;

fn project(place: &Place, text: &str) {
    fs::create_dir_all(place.work().join(".agentd")).unwrap();
    fs::write(place.work().join(".agentd/hooks.json"), text).unwrap();
}

const GUARD: &str = r#"{"hooks": {"PreToolUse": [{"matcher": "shell", "hooks": [
    {"type": "command", "command": "echo 'not this' >&2; exit 2"}]}]}}"#;

#[test]
fn a_folders_hooks_are_listed_tried_and_trusted() {
    let place = Place::with_coder();
    assert_eq!(place.ok(&["hooks", "list"]), "no hooks\n");
    project(&place, GUARD);
    let listed = place.ok(&["hooks", "list", "coder"]);
    assert!(
        listed.contains("untrusted") && listed.contains("agentd trust"),
        "{listed}"
    );
    assert_eq!(
        place.ok(&["hooks", "test", "PreToolUse"]),
        "no hook hears of it\n"
    );
    let shown = place.json(&["trust", "--show"]);
    assert_eq!(shown["files"][0]["trusted"], false);
    let hash = shown["hash"].as_str().unwrap();
    place.refused(3, &["trust", "--hash", "of-another-content"]);
    let trusted = place.ok(&["trust", "--hash", hash]);
    assert!(trusted.contains("trusted as it is now"), "{trusted}");
    let tested = place.json(&["hooks", "test", "PreToolUse", "--agent", "coder"]);
    assert_eq!(tested["verdict"]["decision"], "deny");
    assert_eq!(tested["verdict"]["reason"], "not this");
    let set = [
        "hooks",
        "test",
        "PreToolUse",
        "--set",
        "tool_name=read_file",
    ];
    assert_eq!(place.ok(&set), "no hook hears of it\n");
    let status = place.ok(&["show", "coder"]);
    assert!(!status.contains("not trusted"), "{status}");
    place.ok(&["untrust"]);
    assert_eq!(
        place.json(&["hooks", "list"])["hooks"][0]["state"],
        "untrusted"
    );
    let shown = place.ok(&["show", "coder"]);
    assert!(shown.contains("hooks.json"), "{shown}");
}

#[test]
fn a_file_is_checked_with_a_hint() {
    let place = Place::new();
    let file = place.work().join("hooks.json");
    fs::write(&file, r#"{"hooks": {"PreToolUs": []}}"#).unwrap();
    let ran = place.run(&["hooks", "check", "hooks.json"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.out.contains("did you mean `PreToolUse`?"),
        "{}",
        ran.out
    );
    fs::write(&file, GUARD).unwrap();
    assert_eq!(
        place.ok(&["hooks", "check", "hooks.json"]),
        "hooks.json: 1 handler\n"
    );
    assert_eq!(
        place.json(&["hooks", "check", "hooks.json"])["problems"],
        json!([])
    );
    let ran = place.run(&["hooks", "test", "PreToolUs"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("did you mean"), "{}", ran.err);
}
