//! `agentd restore`.

use super::test_cli::TestCli;

#[test]
fn taken_out_again() {
    let cli = TestCli::with_coder();
    let out = cli.ok(&["rm", "coder"]);
    assert!(out.contains("agentd restore coder"), "{out}");
    cli.refused(7, &["send", "coder", "run `true`"]);
    assert_eq!(cli.json(&["restore", "coder"])["archived"], false);
    assert_eq!(cli.json(&["list"])["total"], 1);
    cli.ok(&["send", "coder", "run `true`"]);
}

/// Regression: an agent whose name was taken could not be restored.
#[test]
fn under_another_name_where_its_own_is_taken() {
    let cli = TestCli::with_coder();
    let first = cli.json(&["show", "coder"])["id"].clone();
    cli.ok(&["rm", "coder"]);
    cli.ok(&["create", "coder", "--provider", "demo"]);
    let back = cli.json(&["restore", "coder", "--as", "Old-Coder"]);
    assert_eq!((&back["id"], &back["name"]), (&first, &"old-coder".into()));
    assert_ne!(cli.json(&["show", "coder"])["id"], first);
    cli.ok(&["send", "old-coder", "run `true`"]);
}

#[test]
fn the_one_that_was_put_away_is_meant() {
    let cli = TestCli::with_coder();
    let first = cli.json(&["show", "coder"])["id"].clone();
    cli.ok(&["rm", "coder"]);
    cli.ok(&["create", "coder", "--provider", "demo"]);
    // Its name is another's by now.
    let text = cli.refused(3, &["restore", "coder"]);
    assert!(text.contains("--as NAME"), "{text}");
    cli.ok(&["rename", "coder", "newer"]);
    cli.ok(&["rm", "newer"]);
    assert_eq!(cli.json(&["restore", "coder"])["id"], first);
}
