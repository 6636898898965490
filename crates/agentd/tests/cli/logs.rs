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
    for words in ["> run `echo hello`", "· shell", "hello"] {
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
