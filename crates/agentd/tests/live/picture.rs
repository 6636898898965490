//! The picture of a chat in the README, drawn from the screen of the program. With `AGENTD_WRITE_GOLDEN=1` this test writes
//! the file.

use super::chat::{chat, go, press, send};
use super::chat_screens::{check_file, shown};
use super::test_live::{TestLive, until};
use agentd_testkit::harness::Size;
use agentd_testkit::model::FakeModel;
use serde_json::json;

const BROKEN: &str = "pub fn max(a: u32, b: u32) -> u32 {\n    if a < b { a } else { b }\n}\n";
/// Stands for a test runner: it fails as long as the comparison is reversed.
const TESTS: &str = "if grep -q 'a < b' src/lib.rs\nthen echo 'test max ... FAILED: left 1, right 2'; exit 1\n\
else echo 'test max ... ok'\nfi\n";
/// The second check runs until the picture is taken.
const LINT: &str = "until [ -e go ]; do sleep 0.05; done\n";

/// One call as an item of a reply.
fn call(name: &str, arguments: &serde_json::Value) -> String {
    format!("call {name} {arguments}")
}

#[test]
fn the_picture_in_the_readme_shows_the_program() {
    let scenario = json!([{
        "when": "The test fails",
        "replies": [
            ["say I run the test first.", call("shell", &json!({"command": "./test.sh"}))],
            [call("read_file", &json!({"file_path": "src/lib.rs"}))],
            [
                "say The comparison is reversed.",
                call("edit_file", &json!({
                    "file_path": "src/lib.rs",
                    "old_string": "if a < b { a }",
                    "new_string": "if a > b { a }",
                })),
            ],
            [call("shell", &json!({"command": "./test.sh"}))],
            ["say The test **passes** now: `max` returned the smaller value.", call("shell", &json!({"command": "./lint.sh"}))],
            ["say No warnings."],
        ],
    }]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("scenario.json");
    std::fs::write(&file, scenario.to_string()).unwrap();
    let model = FakeModel::with_scenario(&file).unwrap();
    let live = TestLive::with_model(model)
        .env("TERM", "xterm-256color")
        .and_coder();
    std::fs::create_dir(live.work().join("src")).unwrap();
    std::fs::write(live.work().join("src/lib.rs"), BROKEN).unwrap();
    for (name, text) in [("test.sh", TESTS), ("lint.sh", LINT)] {
        let path = live.work().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
    }
    let mut terminal = chat(&live);
    terminal.resize(Size::new(32, 100)).unwrap();
    send(
        &mut terminal,
        "The test fails. Fix it, then run the linter.",
    );
    until(&terminal, "lint.sh · ");
    press(&mut terminal, "Add a test for equal numbers\x1b\r");
    until(&terminal, "1. Add a test");
    check_file("../../../../docs/chat.svg", || shown(&terminal).svg());
    go(&live);
    until(&terminal, "No warnings");
}
