//! A request that fails is retried after a while, or ends the turn.

use super::harness::{Act, Rig, fails, says, text};
use crate::event::{Body, FailureClass, TurnStatus};
use crate::message::Block;
use crate::state::Phase;
use crate::turn::Input;

const TRANSIENT: [FailureClass; 5] = [
    FailureClass::Unavailable,
    FailureClass::RateLimited,
    FailureClass::Overloaded,
    FailureClass::Dropped,
    FailureClass::Malformed,
];
const HOPELESS: [FailureClass; 3] = [
    FailureClass::Unauthorized,
    FailureClass::Rejected,
    FailureClass::Refused,
];

#[test]
fn a_passing_failure_is_waited_for_and_the_same_is_asked_again() {
    let mut rig = Rig::asked();
    rig.on(fails(FailureClass::Overloaded)).does([
        "append request_ended failed overloaded, note (ends 1.1)",
        "back off 1",
    ]);
    rig.give(Input::BackoffOver)
        .does(["append request_sent 1.2", "send 1.2"]);
    assert_eq!(rig.sent[0].1.messages, rig.sent[1].1.messages);
    rig.on(says("at last")).completes();
}

#[test]
fn every_passing_class_backs_off_and_no_other() {
    for class in TRANSIENT {
        let mut rig = Rig::asked();
        rig.on(fails(class)).ends_with("back off 1");
    }
    for class in HOPELESS {
        let mut rig = Rig::asked();
        rig.on(fails(class));
        let last = rig.machine.agent().last_turn.clone().unwrap();
        assert_eq!(last.status, TurnStatus::Failed, "{class:?}");
        assert_eq!(last.failure, Some(class));
        assert_eq!(rig.machine.agent().phase(), Phase::Failed);
    }
}

#[test]
fn a_hopeless_failure_ends_the_turn_at_once() {
    let mut rig = Rig::asked();
    rig.on(fails(FailureClass::Rejected)).does([
        "append request_ended failed rejected, note (ends 1.1)",
        "append turn_ended failed rejected, checkpoint_set",
    ]);
    // The next prompt is a new turn with all its attempts.
    rig.prompt("try this").ends_with("send 1.2");
}

#[test]
fn the_provider_s_own_wait_is_passed_on() {
    let mut rig = Rig::asked();
    rig.on(Act::Failed {
        class: FailureClass::RateLimited,
        retry_after_ms: Some(700),
        partial: Default::default(),
    })
    .ends_with("back off 1, at least 700 ms");
}

#[test]
fn it_gives_up_after_as_many_failures_as_the_policy_says() {
    let mut rig = Rig::asked();
    rig.on(fails(FailureClass::Overloaded))
        .ends_with("back off 1");
    rig.give(Input::BackoffOver).ends_with("send 1.2");
    rig.on(fails(FailureClass::Dropped)).ends_with("back off 2");
    rig.give(Input::BackoffOver).ends_with("send 1.3");
    rig.on(fails(FailureClass::Overloaded))
        .ends_with("append turn_ended failed overloaded, checkpoint_set");
    assert_eq!(rig.sent.len(), 3);
}

#[test]
fn success_gives_all_tries_back() {
    let mut rig = Rig::asked();
    for n in [1, 2] {
        rig.on(fails(FailureClass::Overloaded))
            .ends_with(&format!("back off {n}"));
        rig.give(Input::BackoffOver);
    }
    rig.on(super::harness::calls(&["shell"]));
    rig.on(super::harness::allowed("call_1_3_0"));
    rig.on(super::harness::finishes(
        "call_1_3_0",
        crate::message::CallOutcome::Ok,
    ));
    rig.on(fails(FailureClass::Overloaded))
        .ends_with("back off 1");
}

/// A failed attempt that is retried leaves a superseded message, which is kept in the history and not sent.
#[test]
fn the_words_of_a_try_that_is_made_again_are_kept_and_not_sent() {
    let mut rig = Rig::asked();
    rig.on(Act::Failed {
        class: FailureClass::Dropped,
        retry_after_ms: None,
        partial: text("first try"),
    })
    .does([
        "append request_ended failed dropped, message superseded, note (ends 1.1)",
        "back off 1",
    ]);
    rig.give(Input::BackoffOver);
    assert_eq!(rig.sent[0].1.messages, rig.sent[1].1.messages);
    let words: Vec<String> = rig
        .journal
        .events
        .iter()
        .flat_map(|e| e.body.words())
        .collect();
    assert!(words.contains(&"first try".to_owned()));
}

/// Only an attempt that is retried is superseded. The model sees the partial reply of the last attempt.
#[test]
fn the_words_of_the_last_try_stay_and_the_turn_has_failed() {
    let mut rig = Rig::with(|_, policy| policy.max_failures = 1);
    rig.prompt("hi");
    rig.on(Act::Failed {
        class: FailureClass::Dropped,
        retry_after_ms: None,
        partial: text("as far as I"),
    })
    .does([
        "append request_ended failed dropped, message interrupted, note (ends 2.1)",
        "append turn_ended failed dropped, checkpoint_set",
    ]);
    rig.prompt("go on").ends_with("send 2.2");
    assert_eq!(
        rig.sent[1].1.messages[1].blocks,
        [Block::text("as far as I")]
    );
}

#[test]
fn the_words_of_a_reply_that_was_refused_halfway_stay_too() {
    let mut rig = Rig::asked();
    rig.on(Act::Failed {
        class: FailureClass::Refused,
        retry_after_ms: None,
        partial: text("I will not"),
    })
    .does([
        "append request_ended failed refused, message interrupted, note (ends 1.1)",
        "append turn_ended failed refused, checkpoint_set",
    ]);
}

#[test]
fn a_failure_is_charged_for_what_it_must_have_used_and_explained_to_people() {
    let mut rig = Rig::asked();
    rig.on(fails(FailureClass::Overloaded));
    let spent = rig.machine.agent().spending.lifetime;
    assert_eq!(spent.requests, 1);
    assert!(spent.usage.input_tokens > 0);
    let note = rig
        .journal
        .events
        .iter()
        .rev()
        .find_map(|event| match &event.body {
            Body::Note(note) => Some(note.text.clone()),
            _ => None,
        });
    assert_eq!(note.as_deref(), Some("it broke"));
}

#[test]
fn failures_survive_a_crash_and_the_wait_is_over_with_it() {
    let mut rig = Rig::asked();
    rig.on(fails(FailureClass::Overloaded))
        .ends_with("back off 1");
    rig.crash().does(["append request_sent 2.1", "send 2.1"]);
    rig.on(fails(FailureClass::Overloaded))
        .ends_with("back off 2");
}

#[test]
fn news_of_another_request_are_no_failure() {
    let mut rig = Rig::asked();
    rig.give(Input::RequestFailed {
        request: crate::fixture::request(1, 9),
        class: FailureClass::Rejected,
        status: None,
        retry_after_ms: None,
        detail: String::new(),
        partial: Default::default(),
    })
    .does([]);
    rig.on(says("fine")).completes();
}
