//! Why a call is allowed, asked about or denied, as it is shown to the user.

use super::{Allow, Ask, Deny, rule};
use crate::permission::{Subject, verdict};

#[test]
fn a_verdict_says_why() {
    let rules = [
        rule("shell", Some("git push*"), Deny),
        rule("shell", Some("curl *"), Ask),
        rule("shell", Some("git *"), Allow),
        rule("*", Some("cargo *"), Allow),
    ];
    let table = [
        (
            "true; git push  origin",
            "the rule `deny shell git push*` matches `git push origin`",
        ),
        (
            "true; 'curl' x",
            "the rule `ask shell curl *` matches `curl x`",
        ),
        (
            "git status",
            "the rule `allow shell git *` matches `git status`",
        ),
        (
            "git status && cargo test",
            "each command is allowed by a rule: `allow shell git *`, `allow * cargo *`",
        ),
        (
            "git $x",
            "`git $x` could become what the rule `deny shell git push*` matches",
        ),
        ("eval \"$x\"", "`eval` decides at run time what it runs"),
        (
            "git status | $SHELL",
            "`$SHELL` decides at run time what it runs",
        ),
        ("git status 'x", "the line cannot be parsed as shell"),
    ];
    for (line, expected) in table {
        let verdict = verdict(&rules, "shell", &Subject::Command(line.into()));
        let because = verdict.map(|verdict| verdict.because.to_string());
        assert_eq!(because.as_deref(), Some(expected), "{line}");
    }
    assert_eq!(
        verdict(&rules, "shell", &Subject::Command("ls".into())),
        None
    );
}

#[test]
fn a_verdict_about_a_file_names_it() {
    let rules = [
        rule("*", Some("*.key"), Deny),
        rule("read_file", None, Allow),
    ];
    let said = |name: &str| {
        let verdict = verdict(&rules, "read_file", &Subject::name(name));
        verdict.map(|verdict| verdict.because.to_string())
    };
    assert_eq!(
        said("a.key").as_deref(),
        Some("the rule `deny * *.key` matches `a.key`")
    );
    assert_eq!(
        said("a").as_deref(),
        Some("the rule `allow read_file` matches `a`")
    );
}

#[test]
fn a_long_line_is_shown_in_short() {
    let rules = [rule("shell", Some("rm *"), Deny)];
    let line = format!("rm '\u{1b}[2J\n{}'", "x".repeat(1000));
    let verdict = verdict(&rules, "shell", &Subject::Command(line));
    let because = verdict.map(|verdict| verdict.because.to_string()).unwrap();
    assert!(
        because.len() < 200 && !because.contains(char::is_control),
        "{because}"
    );
}
