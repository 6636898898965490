//! `agentd set`.

use super::test_cli::TestCli;

#[test]
fn all_of_them_or_none() {
    let cli = TestCli::with_coder();
    cli.ok(&[
        "set",
        "coder",
        "limits.turn.usd=2.50",
        "reasoning=low",
        "verbosity=low",
        "fast=true",
    ]);
    let spec = cli.json(&["show", "coder", "--spec"]);
    assert_eq!(spec["limits"]["turn"]["usd"], 2.5);
    assert_eq!(spec["reasoning"], "low");
    assert_eq!(spec["verbosity"], "low");
    assert_eq!(spec["fast"], true);
    let text = cli.refused(2, &["set", "coder", "verbosity=brief"]);
    assert!(text.contains("medium"), "{text}");
    let text = cli.refused(2, &["set", "coder", "reasoning=high", "modle=x"]);
    assert!(text.contains("modle"), "{text}");
    assert_eq!(cli.json(&["show", "coder", "--spec"])["reasoning"], "low");
    cli.ok(&["set", "coder", "reasoning="]);
    assert!(cli.json(&["show", "coder", "--spec"])["reasoning"].is_null());
}
