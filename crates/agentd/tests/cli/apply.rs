//! `agentd apply`.

use super::test_cli::TestCli;
use std::fs;

#[test]
fn created_changed_and_left_alone() {
    let cli = TestCli::new();
    let file = cli.work().join("reviewer.md");
    fs::write(&file, "---\nprovider: demo\n---\n\nYou review.\n").unwrap();
    assert_eq!(
        cli.ok(&["apply", "-f", "reviewer.md"]),
        "reviewer: created\n"
    );
    assert_eq!(
        cli.ok(&["apply", "-f", "reviewer.md"]),
        "reviewer: unchanged\n"
    );
    // What the file does not say stays.
    fs::write(&file, "You review more.\n").unwrap();
    assert_eq!(cli.json(&["apply", "-f", "reviewer.md"])["done"], "changed");
    let spec = cli.json(&["show", "reviewer", "--spec"]);
    assert_eq!(spec["system"], "You review more.");
    assert_eq!(spec["provider"], "demo");
    assert!(spec["cwd"].is_string());
    fs::write(&file, "---\nprovider: demo\n---\n").unwrap();
    let out = cli.ok(&["apply", "second", "-f", "reviewer.md"]);
    assert_eq!(out, "second: created\n");
}

#[test]
fn a_bad_file_creates_nothing() {
    let cli = TestCli::new();
    cli.refused(2, &["apply", "-f", "missing.md"]);
    fs::write(cli.work().join("a.md"), "---\ntemperature: 9\n---\n").unwrap();
    let text = cli.refused(2, &["apply", "-f", "a.md"]);
    assert!(text.contains("from 0 to 2"), "{text}");
}
