//! What is shown, in which order, and what is left out.

use super::super::tests::Stage;
use agentd_core::spec::Decision;
use serde_json::{Value, json};

fn tree() -> Stage {
    let stage = Stage::new();
    for name in [
        "src/b.rs",
        "src/a/c.rs",
        "a.md",
        ".hidden",
        "target/x.rs",
        ".git/config",
    ] {
        stage.file(name, "");
    }
    stage.file(".gitignore", "target/\n*.log\n");
    stage.file("src/a/.gitignore", "!kept.log\n");
    stage.file("src/a/kept.log", "");
    stage.file("src/lost.log", "");
    stage
}

async fn list(stage: &Stage, arguments: Value) -> String {
    let text = stage.ok("list_files", arguments).await;
    text.lines().collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn files_and_folders_are_shown_in_order() {
    let stage = tree();
    assert_eq!(
        list(&stage, json!({})).await,
        ".gitignore .hidden a.md src/ src/a/ src/a/.gitignore src/a/c.rs src/a/kept.log src/b.rs"
    );
    assert_eq!(
        list(&stage, json!({"depth": 1})).await,
        ".gitignore .hidden a.md src/"
    );
    assert_eq!(
        list(&stage, json!({"path": "src", "depth": 1})).await,
        "src/a/ src/b.rs"
    );
    assert_eq!(list(&stage, json!({"path": "src/b.rs"})).await, "src/b.rs");
    std::os::unix::fs::symlink("src", stage.path("link")).unwrap();
    let linked = list(&stage, json!({"path": "link", "depth": 1})).await;
    assert_eq!(linked, "link/a/ link/b.rs");
    // What is asked for by name is not left out.
    assert_eq!(list(&stage, json!({"path": "target"})).await, "target/x.rs");
}

#[tokio::test]
async fn a_pattern_is_about_the_name_or_the_way() {
    let stage = tree();
    for (pattern, expected) in [
        ("*.rs", "src/a/c.rs src/b.rs"),
        ("src/*.rs", "src/b.rs"),
        ("src/**/*.rs", "src/a/c.rs src/b.rs"),
        ("{a,b}.*", "a.md src/b.rs"),
        ("*.py", "Nothing was found."),
    ] {
        let text = list(&stage, json!({"pattern": pattern})).await;
        assert_eq!(text, expected, "{pattern}");
    }
    let arguments = json!({"path": "src", "pattern": "a/*.rs"});
    assert_eq!(list(&stage, arguments).await, "src/a/c.rs");
    let text = stage.error("list_files", json!({"pattern": "[a"})).await;
    assert!(text.contains("`pattern` is not a pattern"), "{text}");
    let text = stage.error("list_files", json!({"path": "nothing"})).await;
    assert!(text.contains("Cannot look at nothing"), "{text}");
}

#[tokio::test]
async fn many_are_counted_and_some_are_shown() {
    let mut stage = Stage::new();
    stage.options.output_bytes = 100_000;
    for n in 0..1100 {
        stage.file(&format!("{n:04}"), "");
    }
    let text = stage.ok("list_files", json!({})).await;
    assert!(text.starts_with("0000\n0001\n"));
    assert!(
        text.contains("\n0999\n[the first 1,000 of 1,100;"),
        "{text}"
    );
    stage.options.output_bytes = 100;
    let text = stage.ok("list_files", json!({})).await;
    let kept = stage.options.state.join("outputs/call_1.txt");
    assert!(text.contains(&format!("all of it is in {}", kept.display())));
    assert!(std::fs::read_to_string(&kept).unwrap().ends_with("\n0999"));
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(kept).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn what_is_kept_holds_no_secret() {
    let mut stage = Stage::new();
    stage.options.output_bytes = 50;
    for n in 0..20 {
        stage.file(&format!("sk-0123456789.{n:02}"), "");
    }
    let text = stage.ok("list_files", json!({})).await;
    let kept = stage.options.state.join("outputs/call_1.txt");
    let kept = std::fs::read_to_string(kept).unwrap();
    for text in [text, kept] {
        assert!(
            !text.contains("sk-") && text.contains("[redacted"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn what_agentd_keeps_is_left_out() {
    let mut stage = tree();
    stage.options.state = stage.path("src/state");
    stage.file("src/state/outputs/x.rs", "");
    let text = list(&stage, json!({"pattern": "*.rs"})).await;
    assert_eq!(text, "src/a/c.rs src/b.rs");
    // Asked for by name, it is there: the model is told of files in it.
    let text = list(&stage, json!({"path": "src/state", "pattern": "*.rs"})).await;
    assert_eq!(text, "src/state/outputs/x.rs");
}

#[tokio::test]
async fn what_the_rules_deny_is_left_out() {
    let stage = tree().rule("*", "src/a/*", Decision::Deny);
    let text = list(&stage, json!({"path": "src"})).await;
    assert_eq!(text, "src/a/ src/b.rs [3 left out by the permission rules]");
}
