//! A prompt that steers joins the turn at its next boundary.

use super::harness::{Rig, allowed, calls, fails, finishes, says};
use crate::event::{FailureClass, PromptMode};
use crate::message::{Block, CallOutcome, Message};
use crate::turn::Input;

const STEER: PromptMode = PromptMode::Steer;

fn last_message(rig: &Rig) -> Message {
    let (_, request) = rig.sent.last().unwrap();
    request.messages.last().unwrap().clone()
}

#[test]
fn without_a_turn_it_begins_one() {
    let mut rig = Rig::new();
    rig.prompt_as(STEER, "hi").ends_with("send 1.1");
}

#[test]
fn it_joins_when_the_model_has_answered_and_is_answered_in_the_same_turn() {
    let mut rig = Rig::asked();
    rig.prompt_as(STEER, "shorter, please").does([]);
    rig.on(says("a long answer")).does([
        "append request_ended completed, message complete (ends 1.1)",
        "append prompts_taken",
        "append request_sent 1.2",
        "send 1.2",
    ]);
    let steered = Message::user(vec![Block::text("shorter, please")]);
    assert_eq!(last_message(&rig), steered);
    rig.on(says("short")).does([
        "append request_ended completed, message complete, turn_ended completed, checkpoint_set (ends 1.2)",
    ]);
}

#[test]
fn it_joins_behind_the_results_never_between_a_call_and_its_result() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed("call_1_1_0"));
    rig.prompt_as(STEER, "not that file").does([]);
    rig.on(finishes("call_1_1_0", CallOutcome::Ok)).does([
        "append tool_ended call_1_1_0 ok, result",
        "append prompts_taken",
        "append request_sent 1.2",
        "send 1.2",
    ]);
    let steered = Message::user(vec![Block::text("not that file")]);
    assert_eq!(last_message(&rig), steered);
}

#[test]
fn several_join_together_and_queued_ones_stay_where_they_are() {
    let mut rig = Rig::asked();
    rig.prompt("for later").does([]);
    rig.prompt_as(STEER, "one").does([]);
    rig.prompt_as(STEER, "two").does([]);
    rig.on(says("hello")).does([
        "append request_ended completed, message complete (ends 1.1)",
        "append prompts_taken 2",
        "append request_sent 1.2",
        "send 1.2",
    ]);
    assert_eq!(rig.sent[1].1.messages.len(), 4);
    assert_eq!(rig.machine.agent().inbox.waiting().len(), 1);
}

#[test]
fn one_that_comes_during_back_off_is_in_the_next_try() {
    let mut rig = Rig::asked();
    rig.on(fails(FailureClass::Overloaded))
        .ends_with("back off 1");
    rig.prompt_as(STEER, "hurry").does(["append prompts_taken"]);
    rig.give(Input::BackoffOver)
        .does(["append request_sent 1.2", "send 1.2"]);
    assert_eq!(rig.sent[1].1.messages.len(), 2);
}

#[test]
fn one_that_is_left_over_from_an_interrupted_turn_joins_the_next() {
    let mut rig = Rig::called(&["shell"]);
    rig.prompt_as(STEER, "and then?").does([]);
    rig.prompt_as(PromptMode::Interrupt, "stop that").does([
        "append tool_ended call_1_1_0 interrupted, result, notice interrupted, turn_ended interrupted, checkpoint_set",
        "append turn_started, prompts_taken",
        "append prompts_taken",
        "append request_sent 1.2",
        "send 1.2",
    ]);
    rig.on(calls(&["shell"])).ends_with("prepare call_1_2_0");
}
