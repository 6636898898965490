//! Matches, their positions, and which files are left out.

use super::super::tests::Fixture;
use agentd_core::secrets::MARK;
use agentd_core::spec::Decision;
use serde_json::json;
use std::fs::File;

fn tree() -> Fixture {
    let fixture = Fixture::new();
    fixture.file("src/b.rs", "fn one() {}\r\nfn Two() {}\n");
    fixture.file("src/a.rs", "// nothing\nfn three() {}");
    fixture.file("a.md", "fn four\n");
    fixture.file("target/x.rs", "fn five\n");
    fixture.file("binary", b"fn six\0");
    fixture.file(".gitignore", "target/\n");
    fixture
}

#[tokio::test]
async fn matches_are_shown_with_their_place() {
    let fixture = tree();
    let text = fixture
        .ok("search_files", json!({"pattern": r"^fn \w+"}))
        .await;
    assert_eq!(
        text,
        "a.md:1: fn four\nsrc/a.rs:2: fn three() {}\nsrc/b.rs:1: fn one() {}\nsrc/b.rs:2: fn Two() {}"
    );
    let arguments = json!({"pattern": "TWO|ONE", "ignore_case": true, "glob": "*.rs"});
    let text = fixture.ok("search_files", arguments).await;
    assert_eq!(text, "src/b.rs:1: fn one() {}\nsrc/b.rs:2: fn Two() {}");
    let arguments = json!({"pattern": "fn", "path": "src/a.rs"});
    assert_eq!(
        fixture.ok("search_files", arguments).await,
        "src/a.rs:2: fn three() {}"
    );
    let text = fixture
        .ok("search_files", json!({"pattern": "seven"}))
        .await;
    assert!(text.starts_with("No matches;"), "{text}");
}

#[tokio::test]
async fn what_is_wrong_is_said() {
    let fixture = tree();
    let text = fixture
        .error("search_files", json!({"pattern": "(a"}))
        .await;
    assert!(
        text.contains("`pattern` is not a regular expression"),
        "{text}"
    );
    let text = fixture
        .error("search_files", json!({"pattern": "a", "glob": "[a"}))
        .await;
    assert!(text.contains("`glob` is not a valid glob"), "{text}");
    let text = fixture
        .error("search_files", json!({"pattern": "a", "path": "x"}))
        .await;
    assert!(text.contains("Cannot access x"), "{text}");
}

#[tokio::test]
async fn many_are_counted_and_some_are_shown() {
    let fixture = Fixture::new();
    fixture.file("a", "x\n".repeat(7));
    fixture.file("b", "x\n".repeat(5));
    let text = fixture
        .ok("search_files", json!({"pattern": "x", "max": 2}))
        .await;
    assert_eq!(
        text,
        "a:1: x\na:2: x\n[the first 2 of 12 matches in 2 files; give a narrower `pattern`, `path` \
         or `glob`]"
    );
}

#[tokio::test]
async fn a_long_line_is_shown_around_its_match() {
    let fixture = Fixture::new();
    fixture.file(
        "a",
        format!("{}needle{}\n", "é".repeat(500), "ü".repeat(500)),
    );
    let text = fixture
        .ok("search_files", json!({"pattern": "needle"}))
        .await;
    assert!(text.len() < 400, "{text}");
    assert!(text.starts_with("a:1: …é") && text.contains("éneedleü") && text.ends_with("ü…"));
}

#[tokio::test]
async fn a_secret_is_shown_nowhere() {
    let fixture = Fixture::new();
    let secret = "sk-0123456789";
    fixture.file("a", format!("key {secret}s\n{}{secret}\n", "x".repeat(290)));
    let text = fixture
        .ok("search_files", json!({"pattern": "key|xx"}))
        .await;
    assert!(text.starts_with(&format!("a:1: key {MARK}s\n")), "{text}");
    assert!(!text.contains("sk-"), "{text}");
}

#[tokio::test]
async fn a_huge_line_is_not_read_whole() {
    let fixture = Fixture::new();
    let path = fixture.file("a", format!("needle\n{}", "x".repeat(9000)));
    // It takes no room on disk, and ends in one line of NULs.
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(1 << 28).unwrap();
    let text = fixture
        .ok("search_files", json!({"pattern": "needle"}))
        .await;
    assert_eq!(text, "a:1: needle");
}

#[tokio::test]
async fn what_the_rules_deny_is_not_looked_into() {
    let fixture = tree().rule("search_files", "*/b.rs", Decision::Deny);
    let text = fixture
        .ok("search_files", json!({"pattern": "fn one"}))
        .await;
    assert!(text.starts_with("No matches;"), "{text}");
    assert!(text.ends_with("\n[1 excluded by the permission rules]"));
}
