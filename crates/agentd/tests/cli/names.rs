//! A name that no agent has: every verb says so, suggests a similar name, and creates nothing.

use super::test_cli::TestCli;

/// Every verb that names an existing agent, with arguments that it can be parsed with.
const VERBS: [&[&str]; 32] = [
    &["send", "NAME", "hello"],
    &["wait", "NAME"],
    &["interrupt", "NAME"],
    &["continue", "NAME"],
    &["approve", "NAME"],
    &["deny", "NAME"],
    &["reset", "NAME"],
    &["rewind", "NAME", "--to", "init"],
    &["fork", "NAME", "other"],
    &["compact", "NAME"],
    &["start", "NAME"],
    &["stop", "NAME"],
    &["restart", "NAME"],
    &["status", "NAME"],
    &["show", "NAME"],
    &["logs", "NAME"],
    &["replay", "NAME"],
    &["conversations", "NAME"],
    &["tasks", "NAME"],
    &["tasks", "stop", "NAME"],
    &["checkpoint", "NAME"],
    &["edit", "NAME"],
    &["set", "NAME", "model=x"],
    &["apply", "NAME", "-f", "a.md"],
    &["hooks", "list", "NAME"],
    &["hooks", "test", "SessionStart", "--agent", "NAME"],
    &["rename", "NAME", "other"],
    &["export", "NAME", "-"],
    &["rm", "NAME"],
    &["restore", "NAME"],
    &["purge", "NAME", "--yes"],
    &["show", "NAME", "--spec"],
];

#[test]
fn every_verb_that_names_an_agent_has_a_mode() {
    let cli = TestCli::with_coder();
    std::fs::write(cli.work().join("a.md"), "---\nprovider: demo\n---\n").unwrap();
    let before = cli.json(&["show", "coder"]);
    for verb in VERBS {
        let named = |arg: &&'static str| match *arg {
            "NAME" => "Coder",
            other => other,
        };
        let mut args: Vec<&str> = verb.iter().map(named).collect();
        args.extend(["--mode", "oneshot"]);
        let text = cli.refused(3, &args);
        assert!(
            text.contains("coder is persistent, not oneshot"),
            "{args:?}: {text}"
        );
    }
    assert_eq!(cli.json(&["show", "coder"])["head"], before["head"]);
    cli.ok(&["send", "coder", "--mode", "persistent", "run `true`"]);
    cli.ok(&["show", "coder", "--mode", "auto"]);
    let name = cli.ok(&["run", "--provider", "demo", "--detach", "run `true`"]);
    cli.ok(&["wait", name.trim(), "--mode", "oneshot"]);
}

#[test]
fn a_name_is_the_same_in_capitals() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "Coder", "run `true`"]);
    assert_eq!(cli.json(&["show", " CODER "])["name"], "coder");
    cli.refused(3, &["create", "CODER", "--provider", "demo"]);
    let made = cli.json(&["create", "Backend", "--provider", "demo"]);
    assert_eq!(made["agent"]["name"], "backend");
    assert_eq!(cli.json(&["rename", "BACKEND", "Server"])["name"], "server");
    assert_eq!(
        cli.json(&["fork", "Server", "Other"])["agent"]["name"],
        "other"
    );
    cli.ok(&["rm", "Other"]);
    assert_eq!(cli.json(&["restore", "OTHER"])["name"], "other");
}

#[test]
fn an_unknown_agent_is_not_found() {
    let cli = TestCli::with_coder();
    let verbs: [&[&str]; 22] = [
        &["send", "codr", "hello"],
        &["wait", "codr"],
        &["interrupt", "codr"],
        &["continue", "codr"],
        &["approve", "codr"],
        &["deny", "codr"],
        &["reset", "codr"],
        &["start", "codr"],
        &["stop", "codr"],
        &["restart", "codr"],
        &["status", "codr"],
        &["show", "codr"],
        &["logs", "codr"],
        &["replay", "codr"],
        &["conversations", "codr"],
        &["tasks", "codr"],
        &["checkpoint", "codr"],
        &["set", "codr", "model=x"],
        &["rename", "codr", "other"],
        &["export", "codr"],
        &["rm", "codr"],
        &["purge", "codr", "--yes"],
    ];
    for args in verbs {
        let text = cli.refused(7, args);
        assert!(text.contains("no agent `codr`"), "{args:?}: {text}");
        assert!(text.contains("did you mean `coder`?"), "{args:?}: {text}");
    }
    assert_eq!(cli.json(&["list"])["total"], 1);
}

#[test]
fn a_verb_without_a_name_lists_the_agents_of_the_directory() {
    let cli = TestCli::with_coder();
    for verb in ["logs", "diff", "reset", "show", "approve"] {
        let ran = cli.run(&[verb]);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        let next = format!("the agent of this directory is coder: `agentd {verb} coder …`");
        assert!(ran.err.contains(&next), "{ran:#?}");
    }
    cli.ok(&["create", "other", "--provider", "demo"]);
    let ran = cli.run(&["reset"]);
    assert!(ran.err.contains("agents of this directory: "), "{ran:#?}");
    // It is only advice: nothing was chosen.
    assert_eq!(cli.json(&["show", "coder"])["conversation"]["ordinal"], 1);
}

#[test]
fn what_users_of_other_programs_type_gets_advice() {
    let cli = TestCli::new();
    for (args, expected) in [
        (&["run", "hello", "world"][..], "agentd run \"hello world\""),
        (&["--continue"], "agentd run --continue"),
        (&["resume"], "agentd chat NAME"),
        (&["queue", "list", "coder"], "`agentd queue coder`"),
        (&["chat", "coder", "hello"], "agentd send NAME"),
    ] {
        let ran = cli.run(args);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.err.contains(expected), "{args:?}: {ran:#?}");
        assert!(!ran.err.contains("'runtime'"), "{ran:#?}");
    }
}
