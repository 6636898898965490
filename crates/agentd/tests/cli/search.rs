//! `agentd search`.

use super::test_cli::{TestCli, until};
use serde_json::Value;

/// The hits of a search, as soon as there are some: the index follows the journal with a short delay.
fn hits(cli: &TestCli, args: &[&str]) -> Vec<Value> {
    until("a hit", || {
        let found = cli.json(&[&["search"], args].concat());
        let hits = found["hits"].as_array().unwrap().clone();
        (!hits.is_empty()).then_some(hits)
    })
}

#[test]
fn what_was_said_is_found_with_where_it_was() {
    let cli = TestCli::with_coder();
    cli.ok(&["create", "other", "--provider", "demo"]);
    cli.ok(&["send", "coder", "run `echo first`"]);
    cli.ok(&["reset", "coder"]);
    cli.ok(&["send", "coder", "run `true`"]);
    let sent = cli.json(&["send", "coder", "run `echo zebra crossing`"]);
    let found = hits(&cli, &["zebra", "--agent", "coder"]);
    let prompt = found.iter().find(|hit| hit["role"] == "user").unwrap();
    assert_eq!(prompt["agent"]["name"], "coder");
    assert_eq!(prompt["conversation"], sent["conversation"]);
    assert_eq!(
        (&prompt["ordinal"], &prompt["number"]),
        (&2.into(), &2.into())
    );
    assert_eq!(prompt["turn"], sent["turn"]);
    assert_eq!(prompt["snippet"], "run `echo zebra crossing`");
    assert_eq!(
        prompt["matches"],
        serde_json::json!([{"start": 10, "end": 15}])
    );
    // The result of the call is found as well, and all of it is newest first.
    until("the result", || {
        let found = hits(&cli, &["zebra"]);
        let seqs: Vec<u64> = found
            .iter()
            .map(|hit| hit["seq"].as_u64().unwrap())
            .collect();
        assert!(seqs.is_sorted_by(|a, b| a > b), "{seqs:?}");
        found.iter().any(|hit| hit["role"] == "tool").then_some(())
    });
    let text = cli.ok(&["search", "zebra", "crossing"]);
    assert!(
        text.contains("coder · conversation 2 · turn 2 · user · event"),
        "{text}"
    );
    assert!(text.contains("  run `echo zebra crossing`"), "{text}");
    assert!(
        cli.ok(&["search", "zebra", "--agent", "other"])
            .contains("nothing was found")
    );
    assert!(
        cli.ok(&["search", "zebra", "nowhere"])
            .contains("nothing was found")
    );
}

#[test]
fn words_are_no_query_language_and_pages_follow_one_another() {
    let cli = TestCli::with_coder();
    for n in 1..=3 {
        cli.ok(&["send", "coder", &format!("run `echo needle{n} or not`")]);
    }
    until("all of it", || {
        // The prompt, the call, its result and the reply.
        (hits(&cli, &["needle3"]).len() == 4).then_some(())
    });
    // Operators and quotes are nothing special.
    assert!(!hits(&cli, &["needle1", "OR"]).is_empty());
    assert!(!hits(&cli, &["needle1 (\""]).is_empty());
    let all = hits(&cli, &["needle*"]);
    let first = cli.json(&["search", "needle*", "--limit", "1"]);
    assert_eq!(first["hits"].as_array().unwrap()[..], all[..1]);
    let next = first["next"].as_str().unwrap();
    let second = cli.json(&["search", "needle*", "--limit", "1", "--before", next]);
    assert_eq!(second["hits"].as_array().unwrap()[..], all[1..2]);
    let text = cli.ok(&["search", "needle*", "-n", "1"]);
    assert!(text.contains("1 hit; more with --limit"), "{text}");
    let refused = cli.refused(2, &["search", "(*)"]);
    assert!(refused.contains("no word to search for"), "{refused}");
    cli.refused(7, &["search", "needle1", "--agent", "nobody"]);
}

#[test]
fn what_was_purged_is_not_found() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `echo secretive`"]);
    assert!(!hits(&cli, &["secretive"]).is_empty());
    cli.ok(&["rm", "coder"]);
    // An archived agent is searched, too.
    assert!(!hits(&cli, &["secretive", "--agent", "coder"]).is_empty());
    cli.ok(&["purge", "coder", "--yes"]);
    assert!(
        cli.ok(&["search", "secretive"])
            .contains("nothing was found")
    );
}
