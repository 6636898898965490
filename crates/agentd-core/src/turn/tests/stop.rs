//! Stop (SIGTERM and similar): work in progress is finished, nothing new is started, and the turn continues in
//! another process.

use super::harness::{Act, Rig, allowed, calls, fails, finishes, prepared, says, text};
use crate::event::{Decision, FailureClass, PromptMode, TurnStatus};
use crate::message::CallOutcome;
use crate::turn::{Input, Prepared};

const A: &str = "call_1_1_0";

#[test]
fn an_idle_machine_stops_at_once_and_once() {
    let mut rig = Rig::new();
    rig.give(Input::Stop).does(["stopped"]);
    rig.give(Input::Stop).does([]);
}

#[test]
fn after_it_has_stopped_nothing_is_done_any_more() {
    let mut rig = Rig::called(&["shell"]);
    rig.give(Input::Stop).does(["stopped"]);
    rig.prompt("hello?").does([]);
    rig.prompt_as(PromptMode::Interrupt, "hello?").does([]);
    rig.give(Input::Interrupt).does([]);
    rig.give(Input::Continue).does([]);
    rig.on(allowed(A)).does([]);
    // Another process continues it, with everything that arrived in the meantime.
    rig.take_over(crate::event::After::Restart, |_| {});
    assert_eq!(rig.machine.agent().inbox.waiting().len(), 2);
}

#[test]
fn a_reply_that_is_on_its_way_is_waited_for_and_its_calls_are_left() {
    let mut rig = Rig::asked();
    rig.give(Input::Stop).does([]);
    rig.on(calls(&["shell"])).does([
        "append request_ended completed, message complete (ends 1.1)",
        "stopped",
    ]);
    assert!(rig.machine.agent().turn.is_some());
}

/// After SIGTERM the effect in progress is completed and recorded; then the process exits with 0.
#[test]
fn a_reply_that_answers_ends_the_turn() {
    let mut rig = Rig::asked();
    rig.give(Input::Stop);
    rig.on(says("done")).does([
        "append request_ended completed, message complete, turn_ended completed, checkpoint_set (ends 1.1)",
        "stopped",
    ]);
    let last = rig.machine.agent().last_turn.as_ref().unwrap();
    assert_eq!(last.status, TurnStatus::Completed);
}

#[test]
fn a_request_that_has_not_left_is_taken_back() {
    let mut rig = Rig::new();
    rig.holding = true;
    rig.prompt("hi");
    rig.commit().does(["append context"]);
    rig.commit().does(["append request_sent 1.1"]);
    rig.give(Input::Stop).does([]);
    rig.commit()
        .does(["append request_ended interrupted (ends 1.1)"]);
    rig.commit().does(["stopped"]);
    rig.holding = false;
    rig.take_over(crate::event::After::Restart, |_| {})
        .does(["append request_sent 2.1", "send 2.1"]);
}

#[test]
fn a_running_tool_is_waited_for_and_the_next_is_left() {
    let mut rig = Rig::called(&["shell", "shell"]);
    rig.on(allowed(A));
    rig.give(Input::Stop).does([]);
    rig.on(finishes(A, CallOutcome::Ok))
        .does(["append tool_ended call_1_1_0 ok, result", "stopped"]);
}

#[test]
fn a_tool_whose_start_is_on_record_runs_to_its_end() {
    let mut rig = Rig::called(&["shell"]);
    rig.holding = true;
    rig.on(allowed(A)).does(["append tool_started call_1_1_0"]);
    rig.give(Input::Stop).does([]);
    rig.commit().does(["run call_1_1_0"]);
    rig.on(finishes(A, CallOutcome::Ok))
        .does(["append tool_ended call_1_1_0 ok, result"]);
    rig.commit().does(["stopped"]);
}

#[test]
fn a_call_that_is_being_prepared_is_left_to_the_next_process() {
    let mut rig = Rig::called(&["shell"]);
    rig.give(Input::Stop).does(["stopped"]);
    rig.on(allowed(A)).does([]);
    rig.on(prepared(A, Prepared::Ask(String::new()))).does([]);
}

#[test]
fn in_back_off_it_stops_and_the_next_process_tries_again() {
    let mut rig = Rig::asked();
    rig.on(fails(FailureClass::Overloaded));
    rig.give(Input::Stop).does(["stopped"]);
    rig.give(Input::BackoffOver).does([]);
    rig.take_over(crate::event::After::Restart, |_| {})
        .does(["append request_sent 2.1", "send 2.1"]);
}

#[test]
fn a_request_that_fails_while_it_stops_is_not_tried_again_here() {
    let mut rig = Rig::asked();
    rig.give(Input::Stop);
    rig.on(fails(FailureClass::Overloaded)).does([
        "append request_ended failed overloaded, note (ends 1.1)",
        "stopped",
    ]);
}

#[test]
fn a_question_is_left_waiting() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(prepared(A, Prepared::Ask(String::new())));
    rig.give(Input::Stop).does(["stopped"]);
    rig.decide(Decision::Allow).does([]);
    rig.take_over(crate::event::After::Restart, |_| {})
        .does(["prepare call_1_1_0 with consent"]);
}

#[test]
fn a_turn_that_begins_is_begun_and_left() {
    let mut rig = Rig::new();
    rig.holding = true;
    rig.prompt("hi")
        .does(["append turn_started, prompts_taken"]);
    rig.give(Input::Stop).does([]);
    rig.commit().does(["stopped"]);
    assert!(rig.machine.agent().turn.is_some());
}

#[test]
fn prompts_that_wait_are_left_waiting() {
    let mut rig = Rig::asked();
    rig.prompt("second");
    rig.prompt_as(PromptMode::Steer, "and").does([]);
    rig.give(Input::Stop);
    rig.on(says("first")).ends_with("stopped");
    assert_eq!(rig.machine.agent().inbox.waiting().len(), 2);
}

/// `agentd stop` cancels the turn.
#[test]
fn with_an_interrupt_the_turn_ends_first() {
    let mut rig = Rig::asked();
    rig.give(Input::Interrupt).does(["cancel 1.1"]);
    rig.give(Input::Stop).does([]);
    let partial = Default::default();
    rig.on(Act::Cancelled { partial }).does([
        "append request_ended interrupted (ends 1.1)",
        "append notice interrupted, turn_ended interrupted, checkpoint_set",
        "stopped",
    ]);
}

#[test]
fn an_interrupt_after_it_still_cancels_what_runs() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed(A));
    rig.give(Input::Stop).does([]);
    rig.give(Input::Interrupt).does(["cancel call_1_1_0"]);
    rig.on(finishes(A, CallOutcome::Interrupted))
        .ends_with("stopped");
    assert!(rig.machine.agent().turn.is_none());
}

#[test]
fn a_paused_turn_stays_paused() {
    let mut rig = Rig::asked();
    rig.on(fails(FailureClass::Overloaded));
    let reason = crate::event::PauseReason::MissingKey;
    rig.write(vec![crate::event::TurnPaused { reason }.into()]);
    rig.give(Input::Stop).does(["stopped"]);
}

/// Regression: `daemon stop` took 22 seconds if the model did not reply.
#[test]
fn a_process_that_leaves_does_not_wait_for_the_reply() {
    let mut rig = Rig::asked();
    rig.give(Input::Leave).does(["cancel 1.1"]);
    let partial = text("");
    rig.on(Act::Cancelled { partial })
        .does(["append request_ended lost (ends 1.1)", "stopped"]);
    assert!(rig.machine.agent().turn.is_some());
    rig.take_over(crate::event::After::Start, |_| {})
        .does(["append request_sent 2.1", "send 2.1"]);
}

#[test]
fn what_had_come_of_a_reply_that_is_left_is_kept_and_the_turn_goes_on() {
    let mut rig = Rig::asked();
    // Whether or not it was told to stop before.
    rig.give(Input::Stop).does([]);
    rig.give(Input::Leave).does(["cancel 1.1"]);
    let partial = text("I was about to");
    rig.on(Act::Cancelled { partial }).does([
        "append request_ended lost, message interrupted, notice restarted (ends 1.1)",
        "stopped",
    ]);
    rig.take_over(crate::event::After::Start, |_| {})
        .does(["append request_sent 2.1", "send 2.1"]);
    rig.on(says("done")).completes();
}

#[test]
fn a_process_that_leaves_waits_for_a_tool() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed(A));
    rig.give(Input::Leave).does([]);
    rig.on(finishes(A, CallOutcome::Ok))
        .does(["append tool_ended call_1_1_0 ok, result", "stopped"]);
}
