//! What translated rules match.

use super::*;

const DIRS: RuleDirs<'_> = RuleDirs {
    dir: "/src",
    home: Some("/home/me"),
};

fn rule(text: &str) -> ForeignRule {
    ForeignRule::parse(text).unwrap()
}

fn is_denied(text: &str, tool: &str, subject: Subject) -> bool {
    rule(text).matches(tool, &[subject], DIRS).unwrap()
}

fn runs(text: &str, line: &str) -> bool {
    is_denied(text, "shell", Subject::Command(line.to_owned()))
}

fn reads(text: &str, path: &str) -> bool {
    is_denied(text, "read_file", Subject::name(path))
}

#[test]
fn a_rule_is_a_tool_and_what_of_its_calls() {
    for text in [
        "Bash(git push:*)",
        "Read",
        "mcp__github__*",
        "Read(./a (b).md)",
    ] {
        assert_eq!(rule(text).to_string(), text);
    }
    assert_eq!(rule("Bash(*)"), rule("Bash"));
    for text in [
        "",
        "Bash(ls",
        "(ls)",
        "two words",
        "tool_input.command matches 'git'",
    ] {
        assert_eq!(ForeignRule::parse(text), Err(Error::NotARule), "{text}");
    }
}

#[test]
fn commands_match_by_words_wherever_they_stand_in_a_line() {
    for text in ["Bash(git push:*)", "Bash(git push *)"] {
        assert!(runs(text, "git push") && runs(text, "git push --force"));
        assert!(runs(text, "cd x && /usr/bin/git push origin"));
        assert!(!runs(text, "git pushes") && !runs(text, "git pull"));
    }
    assert!(runs("Bash(ls*)", "lsof") && !runs("Bash(ls)", "lsof"));
    assert!(runs("Bash", "anything"));
    // What a line runs is not known: it could be this.
    assert!(runs("Bash(rm *)", "$x -r ."));
}

#[test]
fn paths_are_those_of_an_ignore_file() {
    for (text, yes, no) in [
        (
            "Read(.env)",
            vec!["/src/.env", "/src/a/b/.env", "/src/.env/x"],
            vec!["/src/.env2", "/x/.env"],
        ),
        ("Read(./.env)", vec!["/src/.env"], vec!["/src/a/.env"]),
        ("Read(/.env)", vec!["/src/.env"], vec!["/src/a/.env"]),
        (
            "Read(secrets/**)",
            vec!["/src/secrets/a", "/src/secrets/a/b"],
            vec!["/src/a/secrets/b"],
        ),
        (
            "Read(**/secrets/**)",
            vec!["/src/secrets/a", "/src/x/y/secrets/b"],
            vec!["/src/secret"],
        ),
        (
            "Read(~/.ssh/**)",
            vec!["/home/me/.ssh/id"],
            vec!["/src/.ssh/id"],
        ),
        (
            "Read(//etc/passwd)",
            vec!["/etc/passwd"],
            vec!["/src/etc/passwd"],
        ),
        (
            "Read(*.pem)",
            vec!["/src/a.pem", "/src/x/a.pem"],
            vec!["/src/a.pem2"],
        ),
        (
            "Read(build/)",
            vec!["/src/build/x", "/src/a/build/x"],
            vec!["/src/builds"],
        ),
        (
            "Read(a/**/b)",
            vec!["/src/a/b", "/src/a/x/y/b"],
            vec!["/src/ab"],
        ),
    ] {
        for path in yes {
            assert!(reads(text, path), "{text} {path}");
        }
        for path in no {
            assert!(!reads(text, path), "{text} {path}");
        }
    }
}

#[test]
fn a_rule_about_a_kind_of_work_is_about_all_tools_that_do_it() {
    let names = |text: &str| {
        let rules = rule(text).rules(Decision::Deny, DIRS).unwrap();
        let mut names: Vec<String> = rules.into_iter().map(|rule| rule.tool).collect();
        names.dedup();
        names
    };
    assert_eq!(
        names("Read(a)"),
        ["read_file", "list_files", "search_files"]
    );
    assert_eq!(names("Write(a)"), ["write_file", "edit_file"]);
    assert_eq!(names("mcp__github"), ["mcp__github__*"]);
    assert_eq!(
        names("mcp__github__delete_repo"),
        ["mcp__github__delete_repo"]
    );
    assert_eq!(names("BashOutput"), ["task_output"]);
    let patch = Subject::name("/src/a.ts");
    assert!(is_denied("Edit(*.ts)", "apply_patch", patch));
    let url = |url: &str| is_denied("WebFetch(domain:x.org)", "fetch_url", Subject::name(url));
    assert!(url("https://x.org/a") && url("http://x.org:80/") && url("https://me@x.org/"));
    assert!(!url("https://y.org/x.org/"));
}

#[test]
fn what_has_no_counterpart_is_an_error() {
    for (text, error) in [
        ("WebSearch", no_tool("WebSearch")),
        ("Skill(deploy)", no_tool("Skill")),
        ("Read([ab].md)", Error::Pattern),
        ("Read(../x)", Error::Pattern),
        ("WebFetch(https://x.org)", Error::Pattern),
    ] {
        assert_eq!(rule(text).rules(Decision::Deny, DIRS), Err(error), "{text}");
    }
    let homeless = RuleDirs { home: None, ..DIRS };
    let found = rule("Read(~/x)").rules(Decision::Deny, homeless);
    assert_eq!(found, Err(Error::NoHome));
}
