//! Hooks around a compaction that somebody asks for.

use crate::hooks_stage::*;
use crate::house::House;
use agentd_client::api::{Compact, Compacted};
use agentd_core::event::Kind;
use agentd_core::state::CompactionOutcome;
use serde_json::json;

fn compact(house: &House, instructions: Option<&str>) -> Compacted {
    let ask = Compact {
        instructions: instructions.map(str::to_owned),
        ..Compact::default()
    };
    house.block(house.client().compact("coder", &ask)).unwrap()
}

fn used(hooks: &[(&str, serde_json::Value)]) -> House {
    let house = House::new();
    user(&house, &file(hooks));
    house.create("coder");
    house.completed("coder", "the magic word is xyzzy");
    house
}

#[test]
fn they_hear_who_wants_it_with_which_words_and_what_came_of_it() {
    let house = used(&[
        ("PreCompact", keep_and("true")),
        ("PostCompact", keep_and("true")),
        ("SessionStart", keep_and("echo the code word is swordfish")),
    ]);
    let made = compact(&house, Some("heed the plugh"));
    assert_eq!(made.outcome, CompactionOutcome::Compacted);
    let [before] = &heard_of(&house, "PreCompact")[..] else {
        panic!("{:?}", heard(&house));
    };
    assert_eq!(before["trigger"], "manual");
    assert_eq!(before["custom_instructions"], "heed the plugh");
    let [after] = &heard_of(&house, "PostCompact")[..] else {
        panic!("{:?}", heard(&house));
    };
    assert_eq!(after["trigger"], "manual");
    let summary = house.until_kind("coder", Kind::Summary);
    let agentd_core::event::Body::Summary(summary) = summary.body else {
        panic!("a summary")
    };
    assert_eq!(after["compact_summary"], json!(summary.text));
    assert!(!summary.text.is_empty());
    let sources: Vec<_> = heard_of(&house, "SessionStart")
        .iter()
        .map(|input| input["source"].clone())
        .collect();
    assert_eq!(sources, ["startup", "compact"]);
    house.completed("coder", "do: say next");
    let request = last_request(&house).to_string();
    assert_eq!(request.matches("swordfish").count(), 1, "{request}");
    // The next one has words of its own, and none.
    compact(&house, None);
    assert_eq!(heard_of(&house, "PreCompact")[1]["custom_instructions"], "");
    all_ran(&house, "coder");
    house.verify();
}

#[test]
fn one_may_refuse_it_by_its_exit_code_and_the_matcher_tells_them_apart() {
    let house = House::new();
    let guard = json!({"hooks": {"PreCompact": [
        {"matcher": "auto", "hooks": [command("echo auto >> effects; exit 2")]},
        {"matcher": "manual", "hooks": [keep_and("echo 'not now' >&2; exit 2")]},
    ]}});
    user(&house, &guard);
    house.create("coder");
    house.completed("coder", "the magic word is xyzzy");
    let made = compact(&house, None);
    assert_eq!(made.outcome, CompactionOutcome::Failed);
    let error = made.error.unwrap();
    assert!(error.contains("not now"), "{error}");
    assert_eq!(house.count("coder", Kind::Compacted), 0);
    assert_eq!(house.effects().len(), 0);
    assert_eq!(house.requests().len(), 1, "the model was not asked");
    user(&house, &file(&[]));
    assert_eq!(compact(&house, None).outcome, CompactionOutcome::Compacted);
}
