//! What calls may need, and which words and rules say so.

use super::*;
use crate::spec::Decision;

const HOME: &str = "/home/me";

fn places() -> Places<'static> {
    Places {
        cwd: Path::new("/home/me/work"),
        home: Some(Path::new(HOME)),
    }
}

fn need(text: &str) -> Need {
    Need::parse(text, places()).unwrap()
}

#[test]
fn entries_name_whole_paths_without_detours() {
    for (given, expected) in [
        ("write:~/a", "write:/home/me/a"),
        ("write:~", "write:/home/me"),
        ("write:../other/", "write:/home/me/other"),
        ("read:/srv/x/../../etc/hosts", "read:/etc/hosts"),
        ("read:~other/x", "read:/home/me/work/~other/x"),
        ("service:ssh-agent", "service:ssh-agent"),
        ("host:Example.COM:443", "host:example.com:443"),
        ("git-config", "git-config"),
        ("everything", "everything"),
    ] {
        let parsed = need(given);
        assert_eq!(parsed.to_string(), expected, "{given}");
        assert_eq!(need(expected), parsed, "{given}");
    }
}

#[test]
fn what_is_no_entry_is_refused_with_the_reason() {
    for (given, why) in [
        ("", "no entry"),
        ("~/a", "no entry"),
        ("write:", "empty"),
        ("write:/", "`everything`"),
        ("write:/home/..", "`everything`"),
        ("read:/proc/1/root", "own /proc"),
        ("write:/x/../dev/sda", "own /proc"),
        ("write:a\0b", "NUL"),
        ("service:dbus", "no such service"),
        ("host:http://x", "example.com"),
        ("exec:/bin/sh", "unknown word"),
        ("Everything", "no entry"),
    ] {
        let error = Need::parse(given, places()).unwrap_err().to_string();
        assert!(error.contains(why), "{given}: {error}");
    }
    let many: Vec<String> = (0..=MOST).map(|n| format!("write:/srv/{n}")).collect();
    assert_eq!(parse(&many, places()), Err(Invalid::TooMany));
    assert_eq!(parse::<&str>(&[], places()), Err(Invalid::Empty));
    let homeless = Places {
        home: None,
        ..places()
    };
    assert!(Need::parse("write:~/a", homeless).is_err());
}

#[test]
fn an_entry_counts_once() {
    let needs = parse(&["write:~/a", "write:/home/me/a", "read:~/a"], places()).unwrap();
    assert_eq!(needs, [need("write:~/a"), need("read:~/a")]);
}

#[test]
fn what_the_user_should_look_at_twice_is_marked() {
    use Danger::{Credentials, Everything, Home, Socket, Startup, System};
    for (given, expected) in [
        ("everything", Some(Everything)),
        ("git-config", Some(Startup)),
        ("service:docker", Some(Credentials)),
        ("write:~/.ssh", Some(Credentials)),
        ("read:~/.ssh/id_ed25519", Some(Credentials)),
        ("read:~/.mozilla/firefox", Some(Credentials)),
        ("write:~/.bashrc", Some(Startup)),
        ("write:~/.config/autostart/x.desktop", Some(Startup)),
        ("write:~/.config", Some(Credentials)),
        ("write:~/.local/share", Some(Credentials)),
        ("write:~", Some(Home)),
        ("write:/home", Some(Home)),
        ("read:~", Some(Home)),
        ("read:/run/user/1000/bus", Some(Socket)),
        ("read:~/x/agent.sock", Some(Socket)),
        ("write:/etc/hosts", Some(System)),
        ("read:/etc/shadow", Some(Credentials)),
        ("read:/etc", Some(Credentials)),
        ("read:/var/lib/postgresql", Some(Credentials)),
        ("write:/opt/tool", Some(System)),
        ("write:~/.pyenv/shims", Some(Startup)),
        ("write:~/.claude/settings.json", Some(Startup)),
        ("read:/etc/hosts", None),
        ("read:/opt/tool", None),
        ("read:~/.pyenv", None),
        ("read:~/.bashrc", None),
        ("write:~/notes", None),
        ("write:/srv/data", None),
        ("host:example.com", None),
    ] {
        let found = need(given).danger(At::File, Some(Path::new(HOME)));
        assert_eq!(found, expected, "{given}");
    }
}

#[test]
fn the_words_say_what_is_opened() {
    let of = |text: &str, at| need(text).words(at);
    let ssh = "write /home/me/.ssh and all that is in it";
    assert_eq!(of("write:~/.ssh", At::Dir), ssh);
    assert_eq!(of("write:~/a", At::Missing), "create /home/me/a");
    assert_eq!(of("read:~/a", At::File), "read /home/me/a");
    // A blank at its end is seen.
    assert_eq!(of("read:~/a ", At::File), "read \"/home/me/a \"");
    assert!(of("everything", At::Missing).contains("outside the sandbox"));
    let socket = need("read:~/a").danger(At::Socket, None);
    assert_eq!(socket, Some(Danger::Socket));
}

fn rule(pattern: &str, decision: Decision, needs: &[&str]) -> Rule {
    Rule {
        tool: "shell".to_owned(),
        pattern: Some(pattern.to_owned()),
        decision,
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
    }
}

/// Over all sets of needs of a call and of a rule: a rule covers a call only if it names each of the call's needs.
#[test]
fn a_rule_covers_only_what_it_names() {
    let all = [
        "write:~/a",
        "write:~/a/b",
        "read:~/a",
        "service:gh",
        "host:example.com",
        "everything",
    ];
    let subset = |bits: usize| -> Vec<&str> {
        let kept = all.iter().enumerate();
        let kept = kept.filter(|(at, _)| bits & (1 << at) != 0);
        kept.map(|(_, entry)| *entry).collect()
    };
    for named in 0..1 << all.len() {
        let rules = [rule("git push*", Decision::Allow, &subset(named))];
        for wanted in 1..1 << all.len() {
            let needs = parse(&subset(wanted), places()).unwrap();
            let covers = covering(&rules, &needs, places()).len() == 1;
            assert_eq!(covers, wanted & !named == 0, "{named:b} {wanted:b}");
        }
    }
}

#[test]
fn rules_that_ask_and_deny_always_count() {
    let rules = [
        rule("a", Decision::Ask, &[]),
        rule("b", Decision::Deny, &[]),
        rule("c", Decision::Allow, &[]),
        rule("d", Decision::Allow, &["write:../other"]),
    ];
    let kept = covering(&rules, &[need("write:/home/me/other")], places());
    let patterns: Vec<_> = kept.iter().filter_map(|it| it.pattern.as_deref()).collect();
    assert_eq!(patterns, ["a", "b", "d"]);
}
