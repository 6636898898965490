//! Ids on the command line: any unique beginning of at least four characters will do, and turns have numbers.

use super::approve::asking;
use super::test_cli::TestCli;
use serde_json::Value;

/// The beginning of an id that no other id of the test has: ids that were made in the same minute begin alike.
fn short(id: &Value) -> String {
    id.as_str().unwrap().chars().take(30).collect()
}

/// A beginning that all ids have which were made in the same month.
fn common(id: &Value) -> String {
    id.as_str().unwrap().chars().take(4).collect()
}

#[test]
fn agents_conversations_turns_and_prompts_have_short_ids() {
    let cli = TestCli::with_coder();
    let first = cli.json(&["send", "coder", "run `echo one`"]);
    let second = cli.json(&["send", "coder", "run `echo two`"]);
    let agent = cli.json(&["show", "coder"]);
    let shown = cli.json(&["show", &short(&agent["id"])]);
    assert_eq!(shown["name"], "coder");
    let conversation = short(&agent["conversation"]["id"]);
    let one = cli.json(&["show", "coder", "--conversation", &conversation]);
    assert_eq!(one["id"], agent["conversation"]["id"]);
    let answer = cli.json(&["wait", "coder", &short(&first["prompt"])]);
    assert_eq!(answer["prompt"], first["prompt"]);
    let rewound = cli.ok(&["rewind", "coder", "--to", &short(&first["turn"])]);
    assert!(rewound.contains("conversation 2"), "{rewound}");
    // The whole id, its beginning and the number of a turn mean the same.
    let whole = second["turn"].as_str().unwrap().to_owned();
    let events = cli.lines(&["logs", "coder", "--turn", &whole]);
    assert_eq!(
        events,
        cli.lines(&["logs", "coder", "--turn", &short(&second["turn"])])
    );
    let by_number = ["logs", "coder", "--conversation", "1", "--turn", "2"];
    assert_eq!(events, cli.lines(&by_number));
    assert!(events.iter().all(|event| event["turn"] == second["turn"]));
}

#[test]
fn several_ids_that_begin_alike_are_listed() {
    let cli = TestCli::with_coder();
    cli.ok(&["create", "other", "--provider", "demo"]);
    let agents = ["coder", "other"].map(|name| cli.json(&["show", name])["id"].clone());
    let refused = cli.refused(2, &["show", &common(&agents[0])]);
    for id in &agents {
        assert!(refused.contains(id.as_str().unwrap()), "{refused}");
    }
    let turns = [1, 2].map(|n| cli.json(&["send", "coder", &format!("run `echo {n}`")]));
    let refused = cli.refused(2, &["logs", "coder", "--turn", &common(&turns[0]["turn"])]);
    for sent in &turns {
        assert!(
            refused.contains(sent["turn"].as_str().unwrap()),
            "{refused}"
        );
    }
    let refused = cli.refused(2, &["wait", "coder", &common(&turns[0]["prompt"])]);
    assert!(refused.contains("several prompts"), "{refused}");
    let object = cli.run(&["show", &common(&agents[0]), "--json"]).out;
    let object: Value = serde_json::from_str(&object).unwrap();
    assert_eq!(
        (&object["kind"], &object["exit"]),
        (&"usage".into(), &2.into())
    );
}

#[test]
fn what_does_not_exist_or_is_too_short_is_told() {
    let cli = TestCli::with_coder();
    cli.ok(&["send", "coder", "run `true`"]);
    cli.refused(7, &["show", "ffffffff"]);
    cli.refused(7, &["show", "coder", "--conversation", "ffffffff"]);
    cli.refused(7, &["logs", "coder", "--turn", "ffffffff"]);
    cli.refused(7, &["logs", "coder", "--turn", "2"]);
    cli.refused(7, &["wait", "coder", "ffffffff"]);
    cli.refused(7, &["logs", "coder", "--task", "ffffffff"]);
    cli.refused(7, &["tasks", "stop", "ffffffff"]);
    for args in [
        &["wait", "coder", "fff"][..],
        &["show", "coder", "--conversation", "fff"],
        &["logs", "coder", "--task", "xyz0"],
    ] {
        let ran = cli.run(args);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.err.contains("first 4 characters"), "{ran:#?}");
    }
}

#[test]
fn an_approval_has_a_short_id() {
    let cli = asking();
    let agent = cli.json(&["show", "coder"]);
    cli.refused(3, &["approve", "coder", "ffffffff"]);
    cli.ok(&["approve", "coder", &short(&agent["approvals"][0]["id"])]);
    cli.ok(&["wait", "coder"]);
    assert!(cli.work().join("effects").exists());
}
