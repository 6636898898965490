//! Work in progress may end before the cancellation reaches it. Then it has ended, and nothing is lost.

use super::harness::{Act, Rig, allowed, calls, fails, finishes, says, text};
use crate::event::{FailureClass, PromptMode, TurnStatus};
use crate::message::{Block, CallOutcome};
use crate::turn::Input;

const A: &str = "call_1_1_0";
const CLOSED: &str = "append notice interrupted, turn_ended interrupted, checkpoint_set";

#[test]
fn a_reply_that_came_before_the_cancel_is_kept_whole() {
    let mut rig = Rig::asked();
    rig.give(Input::Interrupt).does(["cancel 1.1"]);
    rig.on(says("all of it")).does([
        "append request_ended completed, message complete (ends 1.1)",
        CLOSED,
    ]);
    let partial = text("all");
    rig.on(Act::Cancelled { partial }).does([]);
    assert_eq!(rig.machine.window().last_text(), "all of it");
    let last = rig.machine.agent().last_turn.as_ref().unwrap();
    assert_eq!(last.status, TurnStatus::Interrupted);
}

/// goose#9938: tool calls ran after SIGINT.
#[test]
fn the_calls_of_a_reply_that_came_before_the_cancel_are_answered_and_not_run() {
    let mut rig = Rig::asked();
    rig.give(Input::Interrupt);
    rig.on(calls(&["read", "shell"])).does([
        "append request_ended completed, message complete (ends 1.1)",
        "append tool_ended call_1_1_0 interrupted, result, tool_ended call_1_1_1 interrupted, result, notice interrupted, turn_ended interrupted, checkpoint_set",
    ]);
}

#[test]
fn a_tool_that_ended_well_before_the_cancel_has_its_own_result() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed(A));
    rig.give(Input::Interrupt).does(["cancel call_1_1_0"]);
    rig.on(finishes(A, CallOutcome::Ok))
        .does(["append tool_ended call_1_1_0 ok, result", CLOSED]);
    rig.on(finishes(A, CallOutcome::Interrupted)).does([]);
}

/// claude-code#24025: a connection that breaks while it is being cancelled loses no text.
#[test]
fn a_request_that_fails_before_the_cancel_is_not_tried_again_and_its_words_are_kept() {
    let mut rig = Rig::asked();
    rig.give(Input::Interrupt);
    rig.on(Act::Failed {
        class: FailureClass::Dropped,
        retry_after_ms: None,
        partial: text("half a sen"),
    })
    .does([
        "append request_ended failed dropped, message interrupted, note (ends 1.1)",
        CLOSED,
    ]);
    rig.prompt("go on").ends_with("send 1.2");
    let said = &rig.sent[1].1.messages[1];
    assert_eq!(said.blocks, [Block::text("half a sen")]);
}

#[test]
fn an_interrupt_that_comes_while_the_end_is_written_does_not_reach_the_next_turn() {
    let mut rig = Rig::asked();
    rig.holding = true;
    rig.on(says("done")).completes();
    rig.give(Input::Interrupt).does([]);
    rig.commit().does([]);
    let last = rig.machine.agent().last_turn.as_ref().unwrap();
    assert_eq!(last.status, TurnStatus::Completed);
    rig.holding = false;
    rig.prompt("next").ends_with("send 1.2");
    rig.on(says("yes")).completes();
}

#[test]
fn one_that_comes_while_the_reply_is_written_ends_the_turn_all_the_same() {
    let mut rig = Rig::asked();
    rig.holding = true;
    rig.on(calls(&["shell"]));
    rig.give(Input::Interrupt).does([]);
    rig.commit().does([
        "append tool_ended call_1_1_0 interrupted, result, notice interrupted, turn_ended interrupted, checkpoint_set",
    ]);
}

#[test]
fn one_that_comes_while_a_result_is_written_asks_nothing_more() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed(A));
    rig.holding = true;
    rig.on(finishes(A, CallOutcome::Ok));
    rig.give(Input::Interrupt).does([]);
    rig.commit().does([CLOSED]);
    rig.commit().does([]);
    assert_eq!(rig.sent.len(), 1);
}

#[test]
fn one_that_comes_while_a_failure_is_written_does_not_back_off() {
    let mut rig = Rig::asked();
    rig.holding = true;
    rig.on(fails(FailureClass::Overloaded));
    rig.give(Input::Interrupt).does([]);
    rig.commit().does([CLOSED]);
}

#[test]
fn two_interrupts_end_one_turn() {
    let mut rig = Rig::asked();
    rig.prompt("queued");
    rig.give(Input::Interrupt).does(["cancel 1.1"]);
    rig.give(Input::Interrupt).does([]);
    let partial = Default::default();
    rig.on(Act::Cancelled { partial }).ends_with("send 1.2");
    rig.on(says("to the queued one")).completes();
}

#[test]
fn an_interrupting_prompt_during_an_interrupt_is_answered_next() {
    let mut rig = Rig::asked();
    rig.give(Input::Interrupt).does(["cancel 1.1"]);
    rig.prompt_as(PromptMode::Interrupt, "now this").does([]);
    let partial = Default::default();
    rig.on(Act::Cancelled { partial }).ends_with("send 1.2");
    let last = rig.sent[1].1.messages.last().unwrap();
    assert_eq!(last.blocks, [Block::text("now this")]);
}

/// The lab: an interrupt that arrived as its turn ended by itself interrupted the next turn, whose prompt was queued.
#[test]
fn an_interrupt_of_a_turn_that_is_over_leaves_the_next_one_alone() {
    let mut rig = Rig::asked();
    let first = rig.machine.agent().turn.as_ref().unwrap().id;
    rig.prompt("next");
    rig.on(says("done")).ends_with("send 1.2");
    rig.give(Input::InterruptTurn(first)).does([]);
    let second = rig.machine.agent().turn.as_ref().unwrap().id;
    assert_ne!(first, second);
    rig.give(Input::InterruptTurn(second)).does(["cancel 1.2"]);
}
