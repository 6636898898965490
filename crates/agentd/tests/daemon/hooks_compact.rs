//! Hooks around a compaction that a user requests.

use crate::hooks_fixture::*;
use crate::test_daemon::TestDaemon;
use agentd_client::api::{Compact, Compacted};
use agentd_core::event::Kind;
use agentd_core::state::CompactionOutcome;
use serde_json::json;

fn compact(daemon: &TestDaemon, instructions: Option<&str>) -> Compacted {
    let ask = Compact {
        instructions: instructions.map(str::to_owned),
        ..Compact::default()
    };
    daemon
        .block(daemon.client().compact("coder", &ask))
        .unwrap()
}

fn used(hooks: &[(&str, serde_json::Value)]) -> TestDaemon {
    let daemon = TestDaemon::new();
    user(&daemon, &file(hooks));
    daemon.create("coder");
    daemon.completed("coder", "the magic word is xyzzy");
    daemon
}

#[test]
fn they_hear_who_wants_it_with_which_words_and_what_came_of_it() {
    let daemon = used(&[
        ("PreCompact", keep_and("true")),
        ("PostCompact", keep_and("true")),
        ("SessionStart", keep_and("echo the code word is swordfish")),
    ]);
    let made = compact(&daemon, Some("heed the plugh"));
    assert_eq!(made.outcome, CompactionOutcome::Compacted);
    let [before] = &heard_of(&daemon, "PreCompact")[..] else {
        panic!("{:?}", heard(&daemon));
    };
    assert_eq!(before["trigger"], "manual");
    assert_eq!(before["custom_instructions"], "heed the plugh");
    let [after] = &heard_of(&daemon, "PostCompact")[..] else {
        panic!("{:?}", heard(&daemon));
    };
    assert_eq!(after["trigger"], "manual");
    let summary = daemon.until_kind("coder", Kind::Summary);
    let agentd_core::event::Body::Summary(summary) = summary.body else {
        panic!("a summary")
    };
    assert_eq!(after["compact_summary"], json!(summary.text));
    assert!(!summary.text.is_empty());
    let sources: Vec<_> = heard_of(&daemon, "SessionStart")
        .iter()
        .map(|input| input["source"].clone())
        .collect();
    assert_eq!(sources, ["startup", "compact"]);
    daemon.completed("coder", "do: say next");
    let request = last_request(&daemon).to_string();
    assert_eq!(request.matches("swordfish").count(), 1, "{request}");
    // The next one has words of its own, and none.
    compact(&daemon, None);
    assert_eq!(
        heard_of(&daemon, "PreCompact")[1]["custom_instructions"],
        ""
    );
    all_ran(&daemon, "coder");
    daemon.verify();
}

#[test]
fn one_may_refuse_it_by_its_exit_code_and_the_matcher_tells_them_apart() {
    let daemon = TestDaemon::new();
    let guard = json!({"hooks": {"PreCompact": [
        {"matcher": "auto", "hooks": [command("echo auto >> effects; exit 2")]},
        {"matcher": "manual", "hooks": [keep_and("echo 'not now' >&2; exit 2")]},
    ]}});
    user(&daemon, &guard);
    daemon.create("coder");
    daemon.completed("coder", "the magic word is xyzzy");
    let made = compact(&daemon, None);
    assert_eq!(made.outcome, CompactionOutcome::Failed);
    let error = made.error.unwrap();
    assert!(error.contains("not now"), "{error}");
    assert_eq!(daemon.count("coder", Kind::Compacted), 0);
    assert_eq!(daemon.effects().len(), 0);
    assert_eq!(daemon.requests().len(), 1, "the model was not asked");
    user(&daemon, &file(&[]));
    assert_eq!(compact(&daemon, None).outcome, CompactionOutcome::Compacted);
}
