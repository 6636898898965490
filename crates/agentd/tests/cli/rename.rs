//! `agentd rename`.

use super::test_cli::TestCli;

#[test]
fn the_old_name_still_finds_it() {
    let cli = TestCli::with_coder();
    assert_eq!(
        cli.ok(&["rename", "coder", "backend"]),
        "coder is now called backend\n"
    );
    assert_eq!(cli.json(&["show", "coder"])["name"], "backend");
    cli.ok(&["create", "other", "--provider", "demo"]);
    cli.refused(3, &["rename", "other", "backend"]);
}

/// Regression: an alias reserved its name permanently.
#[test]
fn an_alias_gives_way_and_the_command_says_so() {
    let cli = TestCli::with_coder();
    cli.ok(&["rename", "coder", "backend"]);
    let out = cli.ok(&["create", "coder", "--provider", "demo"]);
    assert!(out.contains("`coder` was an alias of backend"), "{out}");
    assert_eq!(cli.json(&["show", "coder"])["name"], "coder");
    assert_eq!(
        cli.json(&["show", "backend"])["aliases"],
        serde_json::json!([])
    );
    cli.ok(&["rename", "backend", "server"]);
    let renamed = cli.json(&["rename", "coder", "backend"]);
    assert_eq!(renamed["displaced"]["name"], "server", "{renamed}");
}
