//! `agentd logs`.

use super::test_cli::{TestCli, signal, until};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::Child;

#[test]
fn what_was_said_and_done() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `echo hello`"]);
    let out = cli.ok(&["logs", "coder"]);
    for words in ["> run `echo hello`", "· $ echo hello", "hello"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let events = cli.lines(&["logs", "coder"]);
    let seqs: Vec<u64> = events
        .iter()
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    let expected: Vec<u64> = (1..=seqs.len() as u64).collect();
    assert_eq!(seqs, expected);
    for key in ["at", "kind", "conversation", "body"] {
        assert!(events[0].get(key).is_some(), "{key}: {}", events[0]);
    }
}

#[test]
fn a_part_of_it() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `echo one`"]);
    let turn = cli.json(&["send", "coder", "run `echo two`"])["turn"].clone();
    let since = cli.lines(&["logs", "coder", "--since", "20"]);
    assert_eq!(since[0]["seq"], 21);
    let of_turn = cli.lines(&["logs", "coder", "--turn", turn.as_str().unwrap()]);
    assert!(!of_turn.is_empty());
    assert!(of_turn.iter().all(|event| event["turn"] == turn));
    // The prompt was queued before the turn.
    let text = cli.ok(&["logs", "coder", "--turn", turn.as_str().unwrap()]);
    assert!(text.contains("run `echo two`"), "{text}");
    assert!(!text.contains("run `echo one`"), "{text}");
}

#[test]
fn a_cleared_log_is_kept() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `echo before`"]);
    cli.ok(&["reset", "coder", "--clear-log"]);
    assert!(!cli.ok(&["logs", "coder"]).contains("before"));
    assert!(cli.ok(&["logs", "coder", "--all"]).contains("before"));
}

#[test]
fn whoever_follows_sees_each_event_once_though_the_daemon_is_killed() {
    let cli = TestCli::with_coder();
    let follower = cli.start(&["logs", "coder", "-f", "--json"]);
    cli.ok(&["send", "coder", "run `echo one`"]);
    signal(cli.daemon_pid().unwrap(), Signal::KILL);
    until("another daemon", || cli.daemon_pid());
    cli.ok(&["send", "coder", "run `echo two`"]);
    let all = cli.lines(&["logs", "coder"]);
    let head = all.last().unwrap()["seq"].as_u64().unwrap();
    let seq = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["seq"].as_u64().unwrap()
    };
    let lines = followed(follower, |line| seq(line) == head);
    let seen: Vec<u64> = lines.iter().map(|line| seq(line)).collect();
    let expected: Vec<u64> = (1..=head).collect();
    assert_eq!(seen, expected);
}

/// The output of `logs -f` up to a given last line.
fn followed(mut follower: Child, is_last: impl Fn(&str) -> bool) -> Vec<String> {
    let out = follower.stdout.take().unwrap();
    let mut seen = Vec::new();
    for line in BufReader::new(out).lines() {
        let line = line.unwrap();
        let is_last = is_last(&line);
        seen.push(line);
        if is_last {
            break;
        }
    }
    signal(follower.id(), Signal::INT);
    let code = until("its end", || follower.try_wait().unwrap()).code();
    assert_eq!(code, Some(130));
    seen
}

#[test]
fn a_reply_is_followed_as_it_streams_and_said_once() {
    let cli = TestCli::with_coder();
    let follower = cli.start(&["logs", "coder", "-f"]);
    cli.ok(&["send", "coder", "count to 30"]);
    cli.ok(&["send", "coder", "run `echo done`"]);
    cli.ok(&["rm", "coder"]);
    let lines = followed(follower, |line| line.ends_with(" archived"));
    // The first may stand behind the number of its event.
    let numbers = lines.iter().filter_map(|line| line.trim().parse().ok());
    let numbers: Vec<u32> = numbers.filter(|number| *number > 1).collect();
    assert_eq!(numbers, (2..=30).collect::<Vec<_>>(), "{lines:#?}");
}

/// The numbers at the beginning of the lines.
fn numbers(out: &str) -> Vec<u64> {
    let first = out
        .lines()
        .filter_map(|line| line.get(..6)?.trim().parse().ok());
    first.collect()
}

#[test]
fn the_last_lines_are_those_at_the_end() {
    let cli = TestCli::with_coder();
    for n in 1..=3 {
        cli.ok(&["send", "coder", &format!("run `echo number-{n}`")]);
    }
    let all = cli.ok(&["logs", "coder"]);
    let shown = numbers(&all);
    for wanted in [1, 3, shown.len(), 1000] {
        let out = cli.ok(&["logs", "coder", "--tail", &wanted.to_string()]);
        assert!(all.ends_with(&out), "{wanted}: {out}");
        let expected = &shown[shown.len().saturating_sub(wanted)..];
        assert_eq!(numbers(&out), expected, "{wanted}");
    }
    assert_eq!(cli.ok(&["logs", "coder", "--tail", "0"]), "");
    // With --json, of all events; with a pattern, of those that match.
    let events = cli.lines(&["logs", "coder"]);
    let last = cli.lines(&["logs", "coder", "-n", "4"]);
    assert_eq!(last, events[events.len() - 4..]);
    let grep = ["logs", "coder", "--grep", "number-[12]", "--tail", "1"];
    let out = cli.ok(&grep);
    assert!(
        out.contains("number-2") && !out.contains("number-3"),
        "{out}"
    );
    // Up to some event.
    let until = shown[shown.len() / 2].to_string();
    let out = cli.ok(&["logs", "coder", "--tail", "2", "--until", &until]);
    assert_eq!(numbers(&out), shown[shown.len() / 2 - 1..=shown.len() / 2]);
}

#[test]
fn following_may_begin_near_the_end() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `echo before`"]);
    let all = cli.lines(&["logs", "coder"]);
    let follower = cli.start(&["logs", "coder", "-f", "--json", "--tail", "2"]);
    cli.ok(&["send", "coder", "run `echo after`"]);
    let events = cli.lines(&["logs", "coder"]);
    let head = events.last().unwrap()["seq"].as_u64().unwrap();
    let seq = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["seq"].as_u64().unwrap()
    };
    let lines = followed(follower, |line| seq(line) == head);
    let seen: Vec<u64> = lines.iter().map(|line| seq(line)).collect();
    // The follower may have looked for the end when there was already more.
    assert!(seen[0] >= all.len() as u64 - 1, "{seen:?}");
    assert!(
        seen.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "{seen:?}"
    );
    assert_eq!(
        cli.run(&["logs", "coder", "-f", "--until", "3"]).code,
        Some(2)
    );
}

#[test]
fn a_time_limits_it_on_both_sides() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `echo one`"]);
    let events = cli.lines(&["logs", "coder"]);
    let at = |event: &Value| event["at"].as_i64().unwrap();
    let text = |event: &Value| {
        let at = agentd_core::time::Timestamp::from_millis(at(event));
        agentd_client::api::time::rfc3339(at)
    };
    let (since, until) = (&events[3], &events[events.len() - 3]);
    let within = events
        .iter()
        .filter(|it| at(it) >= at(since) && at(it) <= at(until));
    let within: Vec<Value> = within.cloned().collect();
    let times = [
        "logs",
        "coder",
        "--since",
        &text(since),
        "--until",
        &text(until),
    ];
    assert_eq!(cli.lines(&times), within);
    assert_eq!(cli.lines(&["logs", "coder", "--since", "1h"]), events);
    assert_eq!(cli.ok(&["logs", "coder", "--until", "1h"]), "");
    assert_eq!(cli.ok(&["logs", "coder", "--since", "2100-01-01"]), "");
    assert_eq!(cli.lines(&["logs", "coder", "--until", "5"]), events[..5]);
    let wrong = cli.run(&["logs", "coder", "--since", "yesterday"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("2026-11-16T10:00Z"), "{wrong:#?}");
}

#[test]
fn lines_are_chosen_timed_and_shown_in_full() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `seq 1 40`"]);
    let short = cli.ok(&["logs", "coder"]);
    assert!(
        short.contains("… 30 lines\n        37\n") && !short.contains("\n        20\n"),
        "{short}"
    );
    let full = cli.ok(&["logs", "coder", "--full"]);
    assert!(!full.contains("… 30 lines"), "{full}");
    assert!(full.lines().any(|line| line.trim() == "40"), "{full}");
    // A pattern is searched for in the whole text, of which the line shows the beginning.
    let found = cli.ok(&["logs", "coder", "--grep", "(?m)^39$"]);
    assert!(
        found.contains("… 30 lines") && !found.contains("> run"),
        "{found}"
    );
    let timed = cli.ok(&["logs", "coder", "--times"]);
    let now = agentd_daemon::clock::now();
    let today = &agentd_client::api::time::rfc3339(now)[..4];
    let first = timed.lines().next().unwrap();
    assert_eq!(&first[6..10], today, "{first}");
    assert_eq!(cli.run(&["logs", "coder", "--grep", "("]).code, Some(2));
}

#[test]
fn a_limit_has_the_number_that_it_had() {
    let cli = TestCli::with_coder();
    cli.ok(&["set", "coder", "limits.max_iterations=1"]);
    cli.refused(5, &["send", "coder", "run `true`"]);
    cli.ok(&["set", "coder", "limits.max_iterations=9"]);
    let out = cli.ok(&["logs", "coder"]);
    let line = "it reached the limit on model requests of one turn (1)";
    assert!(out.contains(line), "{out}");
}
