//! Resets that nobody asks for: off unless the spec says otherwise, and then as any other.

use crate::house::{House, until};
use agentd_client::api::{Reset, Status, Stop};
use agentd_core::event::{Body, Direction, Event, Kind, ResetBegan, ResetSource};
use agentd_core::spec::AutoReset;
use agentd_core::state::Phase;

fn house_with(auto_reset: AutoReset) -> House {
    let house = House::new();
    let mut spec = house.spec();
    spec.auto_reset = auto_reset;
    house.create_with("coder", spec);
    house
}

fn began(house: &House) -> Vec<ResetBegan> {
    let events = house.events("coder").into_iter();
    let began = events.filter_map(|event| match event.body {
        Body::ResetBegan(began) => Some(began),
        _ => None,
    });
    began.collect()
}

fn until_reset(house: &House, n: usize) -> ResetBegan {
    until("a reset", || {
        (house.count("coder", Kind::ResetEnded) == n).then_some(())
    });
    began(house).pop().unwrap()
}

fn notes(house: &House) -> String {
    let events: Vec<Event> = house.events("coder");
    let notes = events.iter().filter_map(|event| match &event.body {
        Body::Note(note) => Some(note.text.as_str()),
        _ => None,
    });
    notes.collect::<Vec<_>>().join("\n")
}

fn last_request(house: &House) -> String {
    house.requests().last().unwrap().body.to_string()
}

#[test]
fn none_of_them_unless_the_spec_says_so() {
    let house = House::new();
    house.create("coder");
    let call = serde_json::json!({ "reason": "why not" });
    house.completed(
        "coder",
        &format!("do: call reset_conversation {call} ;; say done"),
    );
    let request = &house.requests()[0].body["tools"].to_string();
    assert!(!request.contains("reset_conversation"), "{request}");
    assert_eq!(house.show("coder").generation, 1);
    assert_eq!(began(&house), []);
}

#[test]
fn by_its_own_tool_at_the_end_of_the_turn() {
    let house = house_with(AutoReset {
        by_tool: true,
        ..AutoReset::default()
    });
    let call = serde_json::json!({ "reason": "I am confused" });
    let script = format!("do: call reset_conversation {call} ;; say last words");
    let sent = house.send("coder", &script);
    let waiting = house.send("coder", "do: say waited");
    let answer = house.answer("coder", sent.prompt);
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (Status::Completed, "last words")
    );
    let reset = until_reset(&house, 1);
    assert_eq!(reset.source, ResetSource::Tool);
    assert!(notes(&house).contains("I am confused"));
    // What waited goes along, and is answered there.
    let answer = house.answer("coder", waiting.prompt);
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (Status::Completed, "waited")
    );
    assert_ne!(
        Some(answer.conversation),
        house.events("coder").first().map(|it| it.conversation)
    );
    assert!(!last_request(&house).contains("last words"));
    let undo = Reset {
        step: Some(Direction::Undo),
        ..Reset::default()
    };
    let receipt = house.block(house.client().reset("coder", &undo)).unwrap();
    assert_eq!(receipt.source, ResetSource::User);
    assert_eq!(house.show("coder").summary.as_deref(), Some("last words"));
    house.verify();
}

#[test]
fn over_a_size_before_the_next_prompt_is_taken() {
    let house = house_with(AutoReset {
        over_tokens: Some(1),
        ..AutoReset::default()
    });
    house.completed("coder", "do: say one");
    let next = house.completed("coder", "do: say two");
    let reset = until_reset(&house, 2);
    assert_eq!(reset.source, ResetSource::ContextSize);
    assert!(notes(&house).contains("over_tokens"));
    let all = house.block(house.client().conversations("coder")).unwrap();
    assert_eq!(all.conversations[1].id, next.conversation);
    assert_eq!(all.conversations.len(), 3);
    // Taken back, it stays so until something more is said.
    let undo = Reset {
        step: Some(Direction::Undo),
        ..Reset::default()
    };
    let receipt = house.block(house.client().reset("coder", &undo)).unwrap();
    assert_eq!(receipt.new, next.conversation);
    assert_eq!(house.show("coder").phase, Phase::Idle);
    assert_eq!(house.count("coder", Kind::ResetBegan), 3);
    house.completed("coder", "do: say three");
    until_reset(&house, 4);
    house.requests();
}

/// At its time, though no prompt comes; and after a daemon that was not there at that time.
#[test]
fn after_a_silence_whether_or_not_a_prompt_comes() {
    let house = house_with(AutoReset {
        idle_ms: Some(300),
        ..AutoReset::default()
    });
    house.completed("coder", "do: say one");
    let reset = until_reset(&house, 1);
    assert_eq!(reset.source, ResetSource::Idle);
    assert!(notes(&house).contains("idle_ms"));
    // Nothing was said in the new one: it stays.
    house.completed("coder", "do: say two");
    house.kill_daemon();
    house.start_daemon();
    until_reset(&house, 2);
    assert_eq!(house.show("coder").generation, 3);
    let agent = house.show("coder");
    assert_eq!(
        (agent.phase, agent.conversation.unwrap().turns),
        (Phase::Idle, 0)
    );
    // A stopped agent is left alone.
    house.completed("coder", "do: say three");
    house
        .block(house.client().stop("coder", &Stop::default()))
        .unwrap();
    let resets = began(&house).len();
    let begin = std::time::Instant::now();
    until("a while", || {
        (begin.elapsed().as_millis() > 600).then_some(())
    });
    assert_eq!(began(&house).len(), resets);
    house.verify();
}

/// The daemon dies at the end of the turn that asked for it: the next one makes it.
#[test]
fn a_daemon_that_dies_before_it_is_made_makes_it_after() {
    let house = house_with(AutoReset {
        by_tool: true,
        ..AutoReset::default()
    });
    let call = serde_json::json!({});
    let script = format!("do: call reset_conversation {call} ;; slowly 20 some last words here");
    house.send("coder", &script);
    house.until_kind("coder", Kind::ResetScheduled);
    house.kill_daemon();
    house.start_daemon();
    let reset = until_reset(&house, 1);
    assert_eq!(reset.source, ResetSource::Tool);
    assert_eq!(house.show("coder").generation, 2);
    house.completed("coder", "do: say next");
    assert!(!last_request(&house).contains("last words"));
    house.verify();
}

/// The second one came half a minute late: its agent had just had one.
#[test]
fn each_silence_has_its_own_at_its_time() {
    let house = house_with(AutoReset {
        idle_ms: Some(300),
        ..AutoReset::default()
    });
    let begin = std::time::Instant::now();
    for n in 1..=3 {
        house.completed("coder", "do: say something");
        until_reset(&house, n);
    }
    assert!(begin.elapsed().as_secs() < 25, "{:?}", begin.elapsed());
}
