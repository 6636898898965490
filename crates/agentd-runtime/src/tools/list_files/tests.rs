//! Which files are listed, in which order, and which are left out.

use super::super::tests::Fixture;
use agentd_core::spec::Decision;
use serde_json::{Value, json};

fn tree() -> Fixture {
    let fixture = Fixture::new();
    for name in [
        "src/b.rs",
        "src/a/c.rs",
        "a.md",
        ".hidden",
        "target/x.rs",
        ".git/config",
    ] {
        fixture.file(name, "");
    }
    fixture.file(".gitignore", "target/\n*.log\n");
    fixture.file("src/a/.gitignore", "!kept.log\n");
    fixture.file("src/a/kept.log", "");
    fixture.file("src/lost.log", "");
    fixture
}

async fn list(fixture: &Fixture, arguments: Value) -> String {
    let text = fixture.ok("list_files", arguments).await;
    text.lines().collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn files_and_directory_are_shown_in_order() {
    let fixture = tree();
    assert_eq!(
        list(&fixture, json!({})).await,
        ".gitignore .hidden a.md src/ src/a/ src/a/.gitignore src/a/c.rs src/a/kept.log src/b.rs"
    );
    assert_eq!(
        list(&fixture, json!({"depth": 1})).await,
        ".gitignore .hidden a.md src/"
    );
    assert_eq!(
        list(&fixture, json!({"path": "src", "depth": 1})).await,
        "src/a/ src/b.rs"
    );
    assert_eq!(
        list(&fixture, json!({"path": "src/b.rs"})).await,
        "src/b.rs"
    );
    std::os::unix::fs::symlink("src", fixture.path("link")).unwrap();
    let linked = list(&fixture, json!({"path": "link", "depth": 1})).await;
    assert_eq!(linked, "link/a/ link/b.rs");
    // What is asked for by name is not left out.
    assert_eq!(
        list(&fixture, json!({"path": "target"})).await,
        "target/x.rs"
    );
}

#[tokio::test]
async fn a_pattern_is_about_the_name_or_the_way() {
    let fixture = tree();
    for (pattern, expected) in [
        ("*.rs", "src/a/c.rs src/b.rs"),
        ("src/*.rs", "src/b.rs"),
        ("src/**/*.rs", "src/a/c.rs src/b.rs"),
        ("{a,b}.*", "a.md src/b.rs"),
        (
            "*.py",
            "No files found; files that .gitignore excludes are not listed.",
        ),
    ] {
        let text = list(&fixture, json!({"pattern": pattern})).await;
        assert_eq!(text, expected, "{pattern}");
    }
    let arguments = json!({"path": "src", "pattern": "a/*.rs"});
    assert_eq!(list(&fixture, arguments).await, "src/a/c.rs");
    let text = fixture.error("list_files", json!({"pattern": "[a"})).await;
    assert!(text.contains("`pattern` is not a valid glob"), "{text}");
    let text = fixture
        .error("list_files", json!({"path": "nothing"}))
        .await;
    assert!(text.contains("Cannot access nothing"), "{text}");
}

#[tokio::test]
async fn many_are_counted_and_some_are_shown() {
    let mut fixture = Fixture::new();
    fixture.options.output_bytes = 100_000;
    for n in 0..1100 {
        fixture.file(&format!("{n:04}"), "");
    }
    let text = fixture.ok("list_files", json!({})).await;
    assert!(text.starts_with("0000\n0001\n"));
    assert!(
        text.contains("\n0999\n[the first 1,000 of 1,100;"),
        "{text}"
    );
    fixture.options.output_bytes = 100;
    let text = fixture.ok("list_files", json!({})).await;
    let kept = fixture.options.state.join("outputs/call_1.txt");
    assert!(text.contains(&format!("the full output is in {}", kept.display())));
    assert!(std::fs::read_to_string(&kept).unwrap().ends_with("\n0999"));
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(kept).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn what_is_kept_holds_no_secret() {
    let mut fixture = Fixture::new();
    fixture.options.output_bytes = 50;
    for n in 0..20 {
        fixture.file(&format!("sk-0123456789.{n:02}"), "");
    }
    let text = fixture.ok("list_files", json!({})).await;
    let kept = fixture.options.state.join("outputs/call_1.txt");
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
    let mut fixture = tree();
    fixture.options.state = fixture.path("src/state");
    fixture.file("src/state/outputs/x.rs", "");
    let text = list(&fixture, json!({"pattern": "*.rs"})).await;
    assert_eq!(text, "src/a/c.rs src/b.rs");
    // Asked for by name, it is there: the model is told of files in it.
    let text = list(&fixture, json!({"path": "src/state", "pattern": "*.rs"})).await;
    assert_eq!(text, "src/state/outputs/x.rs");
}

#[tokio::test]
async fn what_the_rules_deny_is_left_out() {
    let fixture = tree().rule("*", "src/a/*", Decision::Deny);
    let text = list(&fixture, json!({"path": "src"})).await;
    assert_eq!(text, "src/a/ src/b.rs [3 excluded by the permission rules]");
}
