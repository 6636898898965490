//! The help: every verb has some, with an example.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in what it calls too"
)]

use std::process::{Command, Output};

fn agentd(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agentd"));
    command.args(args).output().unwrap()
}

fn help(args: &[&str]) -> String {
    let output = agentd(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The verbs that `agentd --help` lists.
fn verbs() -> Vec<String> {
    let help = help(&["--help"]);
    let list = help.split("Commands:\n").nth(1).unwrap();
    let lines = list.lines().take_while(|line| !line.trim().is_empty());
    // What stands further in goes on with the line before.
    let verbs = lines.filter_map(|line| line.strip_prefix("  "));
    let verbs = verbs.filter(|line| !line.starts_with(' '));
    let verbs = verbs.filter_map(|line| line.split_whitespace().next());
    verbs
        .filter(|verb| *verb != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_verb_has_an_example() {
    assert_eq!(verbs(), ["agent", "demo", "verify"]);
    for verb in verbs() {
        let help = help(&[&verb, "--help"]);
        let examples = help.split("Examples:\n").nth(1).unwrap_or_default();
        let example = format!("  agentd {verb}");
        assert!(examples.contains(&example), "{verb}: {help}");
    }
    assert!(help(&["--help"]).contains("Examples:\n  agentd demo"));
}

#[test]
fn the_version_is_the_package_s() {
    let expected = format!("agentd {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(help(&["--version"]), expected);
}

#[test]
fn wrong_usage_exits_with_2_and_says_what_is_right() {
    for args in [&["demon"][..], &["verify", "--jsn"], &[]] {
        let output = agentd(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("Usage:"), "{args:?}: {text}");
    }
}
