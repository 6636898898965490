//! A prompt begins a turn; the answer ends it.

use super::harness::{Rig, says};
use crate::event::{PromptMode, TurnStatus};
use crate::message::{Block, Message};
use crate::state::Phase;

#[test]
fn a_prompt_is_answered_and_everything_is_durable_before_it_is_acted_on() {
    let mut rig = Rig::new();
    rig.prompt("hi").does([
        "append turn_started, prompts_taken",
        "append context",
        "append request_sent 1.1",
        "send 1.1",
    ]);
    rig.on(says("hello")).does([
        "append request_ended completed, message complete, turn_ended completed, checkpoint_set (ends 1.1)",
    ]);
    let last = rig.machine.agent().last_turn.clone().unwrap();
    assert_eq!(last.status, TurnStatus::Completed);
    assert_eq!(rig.machine.window().last_text(), "hello");
    assert_eq!(rig.machine.agent().phase(), Phase::Idle);
}

#[test]
fn the_request_holds_the_words_and_the_context_of_the_policy() {
    let rig = Rig::asked();
    let (_, request) = &rig.sent[0];
    let said = Message::user(vec![Block::text("hi")]);
    assert_eq!(request.messages, [said]);
    assert_eq!(request.context, rig.policy.context);
    assert!(request.may_call);
}

#[test]
fn the_next_turn_writes_no_context_again_and_begins_with_the_same_messages() {
    let mut rig = Rig::asked();
    rig.on(says("hello"));
    rig.prompt("and now?").does([
        "append turn_started, prompts_taken",
        "append request_sent 1.2",
        "send 1.2",
    ]);
    let (first, second) = (&rig.sent[0].1.messages, &rig.sent[1].1.messages);
    assert!(second.starts_with(first));
    assert_eq!(second.len(), 3);
}

#[test]
fn a_changed_context_is_durable_before_it_is_sent() {
    let mut rig = Rig::asked();
    rig.on(says("hello"));
    rig.policy.context.model = "other-model".to_owned();
    rig.take_over(crate::event::After::Restart, |_| {}).does([]);
    rig.prompt("again").does([
        "append turn_started, prompts_taken",
        "append context",
        "append request_sent 2.1",
        "send 2.1",
    ]);
    assert_eq!(rig.sent[1].1.context.model, "other-model");
}

#[test]
fn queued_prompts_wait_and_are_answered_one_by_one_in_their_order() {
    let mut rig = Rig::asked();
    rig.prompt("second").does([]);
    rig.prompt("third").does([]);
    rig.on(says("one")).does([
        "append request_ended completed, message complete, turn_ended completed, checkpoint_set (ends 1.1)",
        "append turn_started, prompts_taken",
        "append request_sent 1.2",
        "send 1.2",
    ]);
    let last = rig.sent[1].1.messages.last().unwrap().clone();
    assert_eq!(last, Message::user(vec![Block::text("second")]));
    rig.on(says("two")).ends_with("send 1.3");
    rig.on(says("three")).completes();
    assert_eq!(rig.machine.agent().inbox.waiting().len(), 0);
}

#[test]
fn a_prompt_that_comes_while_an_append_is_under_way_waits_for_it() {
    let mut rig = Rig::new();
    rig.holding = true;
    rig.prompt("first")
        .does(["append turn_started, prompts_taken"]);
    rig.prompt("second").does([]);
    rig.commit().does(["append context"]);
    rig.commit().does(["append request_sent 1.1"]);
    rig.commit().does(["send 1.1"]);
    let said = &rig.sent[0].1.messages;
    assert_eq!(*said, [Message::user(vec![Block::text("first")])]);
}

/// The text may follow the acceptance of its prompt; both are in one append.
#[test]
fn a_turn_that_begins_before_the_words_are_fed_in_has_them_all_the_same() {
    let mut rig = Rig::new();
    rig.prompt_as(PromptMode::Queue, "here I am");
    let said = &rig.sent[0].1.messages;
    assert_eq!(*said, [Message::user(vec![Block::text("here I am")])]);
}

#[test]
fn nothing_to_do_means_no_effect() {
    let mut rig = Rig::new();
    rig.crash().does([]);
    assert_eq!(rig.machine.agent().phase(), Phase::Idle);
}
