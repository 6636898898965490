//! What `docs/hooks.md` shows is so.

use crate::hooks_stage::*;
use crate::house::{House, until};
use agentd_core::hook::{Config, HookEvent};
use agentd_core::state::Phase;
use serde_json::json;

const DOC: &str = include_str!("../../../../docs/hooks.md");

fn example(name: &str) -> &'static str {
    let mark = format!("<!-- example: {name} -->\n```json\n");
    let rest = DOC.split(&mark).nth(1).unwrap();
    rest.split("```").next().unwrap()
}

fn house_with(name: &str) -> House {
    let text = example(name);
    let config = Config::parse(text);
    assert_eq!(config.problems, [], "{name}");
    let house = House::new();
    std::fs::write(house.home().join("hooks.json"), text).unwrap();
    house
}

#[test]
fn every_event_is_in_its_table() {
    for event in HookEvent::ALL {
        assert!(DOC.contains(&format!("`{event}`")), "{event}");
    }
}

#[test]
fn the_guard_says_no() {
    let house = house_with("guard");
    house.create("coder");
    let call = json!({"command": "rm -rf effects"});
    house.completed("coder", &format!("do: call shell {call} ;; say done"));
    assert!(last_request(&house).to_string().contains("ask me first"));
}

#[test]
fn the_seed_opens_a_conversation() {
    let house = house_with("seed");
    house.create("coder");
    house.completed("coder", "do: say one");
    reset(&house, "coder", &Default::default()).unwrap();
    house.completed("coder", "do: say two");
    let request = last_request(&house)["messages"][0].to_string();
    assert!(request.contains("<notice>"), "{request}");
}

#[test]
fn the_reset_is_refused_while_the_file_is_there() {
    let house = house_with("reset");
    house.create("coder");
    std::fs::write(house.work().join(".busy"), "").unwrap();
    let problem = reset(&house, "coder", &Default::default()).unwrap_err();
    assert!(
        problem
            .detail
            .clone()
            .unwrap_or_default()
            .contains("a release is under way"),
        "{problem}"
    );
    std::fs::remove_file(house.work().join(".busy")).unwrap();
    reset(&house, "coder", &Default::default()).unwrap();
    let ended = std::fs::read_to_string(house.work().join("ended.jsonl")).unwrap();
    assert!(ended.contains("next_session_id"), "{ended}");
}

#[test]
fn the_json_has_the_user_asked() {
    let house = house_with("json");
    house.create("coder");
    let call = json!({"file_path": "new.txt", "content": "x"});
    house.send("coder", &format!("do: call write_file {call} ;; say done"));
    until("a question", || {
        (house.show("coder").phase == Phase::AwaitingApproval).then_some(())
    });
    assert!(!house.work().join("new.txt").exists());
}
