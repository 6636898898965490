//! `agentd rm`.

use super::test_cli::TestCli;

#[test]
fn it_is_put_away_and_can_be_looked_at() {
    let cli = TestCli::with_coder();
    cli.ok(&["rm", "coder", "--reason", "the project is over"]);
    assert_eq!(cli.json(&["list"])["total"], 0);
    let archived = cli.json(&["list", "--archived"]);
    assert_eq!(archived["agents"][0]["name"], "coder");
    assert_eq!(cli.json(&["show", "coder"])["archived"], true);
    assert!(cli.ok(&["replay", "coder"]).contains("agent_archived"));
}

#[test]
fn several_are_put_away_at_once() {
    let cli = TestCli::new();
    for name in ["a", "b", "c"] {
        cli.ok(&["create", name, "--provider", "demo"]);
    }
    let out = cli.ok(&["rm", "a", "b"]);
    assert!(
        out.contains("a is archived") && out.contains("b is archived"),
        "{out}"
    );
    // One that does not exist does not keep the others.
    let ran = cli.run(&["rm", "nobody", "c", "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(ran.err.contains("no agent `nobody`"), "{ran:#?}");
    let first = ran.out.lines().next().unwrap();
    let first: serde_json::Value = serde_json::from_str(first).unwrap();
    assert_eq!(first["name"], "c");
    assert_eq!(cli.json(&["list"])["total"], 0);
    cli.refused(7, &["rm", "nobody"]);
    assert_eq!(cli.run(&["rm"]).code, Some(2));
    assert_eq!(cli.run(&["rm", "a", "--oneshot"]).code, Some(2));
}

#[test]
fn a_filter_needs_confirmation_and_shows_what_it_means() {
    let cli = TestCli::with_coder();
    cli.ok(&["run", "--provider", "demo", "run `echo once`"]);
    let ran = cli.run(&["rm", "--idle-for", "0s"]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    for words in [
        "this archives 2 agents",
        "coder",
        "run `echo once`",
        "pass --yes",
    ] {
        assert!(ran.err.contains(words), "{words}: {ran:#?}");
    }
    assert_eq!(cli.json(&["list"])["total"], 2);
    assert_eq!(
        cli.ok(&["rm", "--idle-for", "7d", "--yes"]),
        "no such agents\n"
    );
    cli.ok(&["rm", "--oneshot", "--yes"]);
    let left = cli.json(&["list"]);
    assert_eq!(
        (&left["total"], &left["agents"][0]["name"]),
        (&1.into(), &"coder".into())
    );
    cli.ok(&["rm", "--idle-for", "0s", "--yes"]);
    assert_eq!(cli.json(&["list"])["total"], 0);
}
