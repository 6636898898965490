//! Which rule applies, and what a pattern matches.

mod allowed;
mod because;
mod denied;
mod hostile;

use super::{Decision, Rule, Subject, decide, glob, stricter};
use Decision::{Allow, Ask, Deny};

fn rule(tool: &str, pattern: Option<&str>, decision: Decision) -> Rule {
    Rule {
        tool: tool.into(),
        pattern: pattern.map(Into::into),
        decision,
        needs: Vec::new(),
    }
}

fn shell(decision: Decision, pattern: &str, line: &str) -> bool {
    let rules = [rule("shell", Some(pattern), decision)];
    let default = if decision == Allow { Deny } else { Allow };
    decide(&rules, "shell", &Subject::Command(line.into()), default) == decision
}

#[test]
fn a_pattern_fits_from_end_to_end() {
    let table = [
        ("*", "", true),
        ("*", "a/b", true),
        ("", "", true),
        ("", "a", false),
        ("a", "a", true),
        ("a", "ab", false),
        ("a", "ba", false),
        ("a*", "a", true),
        ("a*c", "abc", true),
        ("a*c", "acb", false),
        ("*a*a*", "banana", true),
        ("*a*a*a*a*", "banana", false),
        ("?", "", false),
        ("?", "é", true),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("a.c", "abc", false),
        ("[ab]", "a", false),
        ("[ab]", "[ab]", true),
        ("src/*", "src/a/b.rs", true),
        ("**", "a", true),
        ("*b", "aab", true),
        ("A", "a", false),
    ];
    for (pattern, text, expected) in table {
        assert_eq!(glob::fits(pattern, text), expected, "{pattern} {text}");
    }
}

#[test]
fn a_cruel_pattern_ends() {
    let pattern = "*a".repeat(200) + "b";
    assert!(!glob::fits(&pattern, &"a".repeat(2000)));
}

#[test]
fn deny_beats_ask_beats_allow_wherever_they_stand() {
    let all = [
        rule("read_file", None, Allow),
        rule("read_file", Some("a*"), Ask),
        rule("*", Some("*.key"), Deny),
    ];
    let mut backwards = all.to_vec();
    backwards.reverse();
    let table = [("b", Allow), ("a", Ask), ("a.key", Deny), ("b.key", Deny)];
    for (name, expected) in table {
        let subject = Subject::name(name);
        assert_eq!(decide(&all, "read_file", &subject, Deny), expected);
        assert_eq!(decide(&backwards, "read_file", &subject, Deny), expected);
    }
    assert_eq!(stricter(Allow, Ask), Ask);
    assert_eq!(stricter(Deny, Ask), Deny);
}

#[test]
fn where_no_rule_matches_the_default_holds() {
    let rules = [rule("shell", None, Deny), rule("read_file", Some("a"), Ask)];
    for default in [Allow, Ask, Deny] {
        let other = Subject::name("b");
        assert_eq!(decide(&rules, "read_file", &other, default), default);
        assert_eq!(decide(&[], "shell", &other, default), default);
    }
}

#[test]
fn a_file_is_meant_by_any_of_its_names() {
    let subject = Subject::Names(vec!["src/a.rs".into(), "/home/me/src/a.rs".into()]);
    for pattern in ["src/*", "/home/me/src/*", "*"] {
        let rules = [rule("*", Some(pattern), Deny)];
        assert_eq!(decide(&rules, "read_file", &subject, Allow), Deny);
    }
    let rules = [rule("*", Some("work/*"), Deny)];
    assert_eq!(decide(&rules, "read_file", &subject, Allow), Allow);
}

#[test]
fn an_allow_pattern_lets_through_no_second_command() {
    for line in [
        "git status",
        "git log -p 'a b' $HOME",
        "git show HEAD^{}",
        "git apply < /tmp/patch",
    ] {
        assert!(shell(Allow, "git *", line), "{line}");
    }
    for line in [
        "git status; rm -rf /",
        "git status;rm -rf /",
        "git status && rm -rf /",
        "git status & rm -rf /",
        "git status | sh",
        "git status || rm -rf /",
        "git status\nrm -rf /",
        "git log `rm -rf /`",
        "git log $(rm -rf /)",
        "git log \"$(rm -rf /)\"",
        "git diff > /etc/passwd",
        "git diff <(rm -rf /)",
        "rm -rf /; git status",
        "gitx",
    ] {
        assert!(!shell(Allow, "git *", line), "{line}");
        assert!(shell(Allow, "*", line), "{line}");
    }
}

#[test]
fn an_allow_pattern_with_controls_covers_just_these() {
    let pattern = "make * 2>&1 | tail *";
    assert!(shell(Allow, pattern, "make test 2>&1 | tail -n 5"));
    for line in [
        "make test | tail -n 5",
        "make x; rm y 2>&1 | tail -n 5",
        "make test 2>&1 | tail -n 5 | sh",
        "make test 2>&1 | tail -n 5 $(rm y)",
    ] {
        assert!(!shell(Allow, pattern, line), "{line}");
    }
    // The order matters too: here a `*` would have to match an operator.
    assert!(!shell(Allow, "a * ; b | c", "a x | y ; b c"));
}

#[test]
fn a_deny_or_ask_pattern_finds_its_command_in_the_line() {
    for decision in [Deny, Ask] {
        for line in [
            "rm -rf /",
            "git status; rm -rf /",
            "true&&rm -rf /",
            "echo `rm -rf /`",
            "echo \"$(rm -rf /)\"",
            "(rm -rf /)",
            "{ rm -rf /; }",
            "cat <(rm -rf /)",
            "if true; then rm -rf /; fi",
            "for a in b; do rm -rf $a; done",
            "! rm -rf /",
            "A=b C=d rm -rf /",
            "rm   -rf\t/",
            "rm \\\n  -rf /",
            "true\nrm -rf /",
            "true | exec rm -rf /",
        ] {
            assert!(shell(decision, "rm -rf *", line), "{decision:?} {line}");
        }
        for line in ["git rm -rf x", "echo rm -rf", "rmdir x", "rm x"] {
            assert!(!shell(decision, "rm -rf *", line), "{decision:?} {line}");
        }
        assert!(shell(decision, "curl * | sh", "curl -s x | sh"));
        assert!(shell(decision, "*sudo*", "true; sudo true"));
    }
}

#[test]
fn without_a_pattern_every_line_is_meant() {
    let line = Subject::Command("a; b".into());
    for decision in [Allow, Ask, Deny] {
        let rules = [rule("shell", None, decision)];
        for default in [Allow, Ask, Deny] {
            assert_eq!(decide(&rules, "shell", &line, default), decision);
        }
    }
}

/// The permission modes of hooks files for sets of rules.
#[test]
fn rules_have_a_mode() {
    let of = |rules: &[(&str, Option<&str>, Decision)]| {
        let rules: Vec<Rule> = rules
            .iter()
            .map(|(tool, pattern, decision)| rule(tool, *pattern, *decision))
            .collect();
        super::mode(&rules)
    };
    assert_eq!(of(&[]), "bypassPermissions");
    assert_eq!(of(&[("shell", Some("git *"), Allow)]), "bypassPermissions");
    assert_eq!(of(&[("shell", None, Ask)]), "acceptEdits");
    assert_eq!(of(&[("shell", Some("rm *"), Deny)]), "acceptEdits");
    assert_eq!(of(&[("*", None, Ask)]), "default");
    assert_eq!(of(&[("edit_file", Some("src/*"), Ask)]), "default");
    assert_eq!(of(&[("*", None, Deny)]), "plan");
    let read_only = ["shell", "write_file", "edit_file"].map(|tool| (tool, None, Deny));
    assert_eq!(of(&read_only), "plan");
    assert_eq!(of(&read_only[1..]), "default");
}

#[test]
fn a_rule_that_allows_a_file_tool_allows_only_such_changes_of_a_patch() {
    use crate::patch::{Change, TOOL};
    let of = |change| Subject::Patched {
        names: vec!["src/a.rs".into()],
        change,
    };
    let decided = |tool: &str, decision, change| {
        let rules = [rule(tool, Some("src/*"), decision)];
        decide(&rules, TOOL, &of(change), Ask)
    };
    for (tool, allowed) in [
        ("edit_file", &[Change::Update][..]),
        ("write_file", &[Change::Write]),
        (TOOL, &[Change::Update, Change::Write, Change::Remove]),
    ] {
        for change in [Change::Update, Change::Write, Change::Remove] {
            let expected = if allowed.contains(&change) {
                Allow
            } else {
                Ask
            };
            assert_eq!(decided(tool, Allow, change), expected, "{tool} {change:?}");
            // A rule that refuses applies to every change.
            assert_eq!(decided(tool, Deny, change), Deny, "{tool} {change:?}");
        }
    }
}
