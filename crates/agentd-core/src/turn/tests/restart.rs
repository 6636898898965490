//! The process dies at some point. Recovery records the outcome of everything, and a new machine that is built from
//! the journal continues where the old one was.

use super::harness::{Act, Rig, allowed, calls, fails, finishes, says, text};
use crate::event::{After, Body, Decision, FailureClass, IncarnationBegan, TurnStatus};
use crate::message::{Block, CallOutcome};
use crate::recover::CallFact;
use crate::spec::OnCrash;
use crate::turn::{Finished, Input, Prepared};

const A: &str = "call_1_1_0";

fn words(rig: &Rig) -> String {
    let (_, request) = rig.sent.last().unwrap();
    crate::wire::encode(request).to_string()
}

/// goose#12133, codex#12382: the turn continues by itself.
#[test]
fn before_anything_was_done_it_begins_the_turn() {
    let mut rig = Rig::new();
    rig.holding = true;
    rig.prompt("hi")
        .does(["append turn_started, prompts_taken"]);
    // The start of the turn was lost with the process; the prompt was not.
    rig.holding = false;
    rig.crash().ends_with("send 2.1");
}

#[test]
fn after_the_turn_began_it_asks() {
    let mut rig = Rig::new();
    rig.holding = true;
    rig.prompt("hi");
    rig.commit().does(["append context"]);
    rig.holding = false;
    rig.crash()
        .does(["append context", "append request_sent 2.1", "send 2.1"]);
}

#[test]
fn a_request_that_was_on_record_and_may_have_left_is_lost_and_asked_again() {
    let mut rig = Rig::asked();
    rig.crash().does([
        "append incarnation_began, request_ended lost (ends 1.1)",
        "append request_sent 2.1",
        "send 2.1",
    ]);
    assert_eq!(rig.sent[0].1.messages, rig.sent[1].1.messages);
}

/// The lab: a process died between the partial reply of an interrupted turn and the turn's end, and the next process
/// took that reply for the answer.
#[test]
fn an_interrupt_whose_end_was_lost_in_a_crash_is_an_interrupt() {
    let mut rig = Rig::asked();
    rig.give(Input::Interrupt).does(["cancel 1.1"]);
    rig.holding = true;
    let partial = text("half a sen");
    rig.on(Act::Cancelled { partial });
    // The partial reply is recorded, the end of the turn is not.
    rig.commit();
    rig.holding = false;
    rig.crash()
        .ends_with("append notice interrupted, turn_ended interrupted, checkpoint_set");
    let last = rig.machine.agent().last_turn.as_ref().unwrap();
    assert_eq!(last.status, TurnStatus::Interrupted);
}

/// Its outcome is unknown. Recovery must record that first, and until then nothing is sent.
#[test]
fn a_request_of_another_process_is_not_sent_again_without_recovery() {
    let mut rig = Rig::asked();
    let (incarnation, after) = (crate::id::Incarnation(2), After::Crash);
    rig.write(vec![IncarnationBegan::new(incarnation, after).into()]);
    let (state, window) = (rig.journal.state(), rig.journal.window());
    rig.machine = crate::turn::Machine::new(state, window, rig.policy.clone(), []);
    rig.prompt("hello?").does([]);
    assert_eq!(rig.sent.len(), 1);
}

#[test]
fn words_that_had_arrived_are_kept_and_the_model_goes_on_from_them() {
    let mut rig = Rig::asked();
    rig.take_over(After::Crash, |facts| facts.draft = text("it was a"))
        .does([
            "append incarnation_began, request_ended lost, message interrupted, notice crashed (ends 1.1)",
            "append request_sent 2.1",
            "send 2.1",
        ]);
    assert!(words(&rig).contains("it was a"));
}

#[test]
fn a_reply_that_was_written_down_is_not_asked_for_again() {
    let mut rig = Rig::asked();
    rig.holding = true;
    rig.on(says("done")).completes();
    rig.keep_first(2);
    rig.commit();
    rig.holding = false;
    rig.crash()
        .does(["append turn_ended completed, checkpoint_set"]);
}

#[test]
fn calls_that_had_not_begun_say_so_and_are_not_begun_by_themselves() {
    let mut rig = Rig::called(&["shell", "shell"]);
    rig.crash().does([
        "append incarnation_began, tool_ended call_1_1_0 not_started, result, tool_ended call_1_1_1 not_started, result, notice crashed",
        "append request_sent 2.1",
        "send 2.1",
    ]);
}

/// goose#11808; langgraph#7417, #7213: nothing is ever run again by itself.
#[test]
fn a_call_that_was_running_and_is_gone_is_unknown_and_not_run_again() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed(A)).ends_with("run call_1_1_0");
    rig.crash_in_call(A, CallFact::Unknown).does([
        "append incarnation_began, tool_ended call_1_1_0 unknown, result, notice crashed",
        "append request_sent 2.1",
        "send 2.1",
    ]);
    rig.on(says("done")).completes();
}

#[test]
fn a_call_that_still_runs_is_waited_for() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed(A));
    rig.crash_in_call(A, CallFact::Running).does([]);
    rig.on(finishes(A, CallOutcome::Ok)).does([
        "append tool_ended call_1_1_0 ok, result",
        "append request_sent 2.1",
        "send 2.1",
    ]);
}

#[test]
fn a_call_that_still_runs_can_be_interrupted() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed(A));
    rig.crash_in_call(A, CallFact::Running);
    rig.give(Input::Interrupt).does(["cancel call_1_1_0"]);
    rig.on(finishes(A, CallOutcome::Interrupted))
        .ends_with("append notice interrupted, turn_ended interrupted, checkpoint_set");
}

/// The notice of the crash must not come between a reply and the results that are still pending.
#[test]
fn results_before_and_after_a_crash_are_one_message() {
    let mut rig = Rig::called(&["read", "read", "read"]);
    for call in [A, "call_1_1_1", "call_1_1_2"] {
        rig.on(allowed(call));
    }
    rig.on(finishes("call_1_1_2", CallOutcome::Ok));
    rig.take_over(After::Crash, |facts| {
        let (lost, runs) = (CallFact::Unknown, CallFact::Running);
        facts.calls.insert(crate::id::CallId::new(A), runs);
        facts
            .calls
            .insert(crate::id::CallId::new("call_1_1_1"), lost);
    })
    .does(["append incarnation_began, tool_ended call_1_1_1 unknown, result, notice crashed"]);
    // The harness checks that the request needed no repair.
    rig.on(finishes(A, CallOutcome::Ok)).ends_with("send 2.1");
    let (_, request) = rig.sent.last().unwrap();
    assert_eq!(request.messages[2].blocks.len(), 3);
}

#[test]
fn a_result_that_was_kept_outside_is_taken_and_counts_as_progress() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed(A));
    let blocks = vec![Block::text("it worked")];
    let ended = CallFact::Ended(Finished::new(CallOutcome::Ok, blocks));
    rig.crash_in_call(A, ended).does([
        "append incarnation_began, tool_ended call_1_1_0 ok, result",
        "append request_sent 2.1",
        "send 2.1",
    ]);
    assert!(words(&rig).contains("it worked"));
    assert_eq!(rig.machine.agent().turn.as_ref().unwrap().crashes, 0);
}

#[test]
fn a_start_that_was_never_written_down_did_not_happen() {
    let mut rig = Rig::called(&["shell"]);
    rig.holding = true;
    rig.on(allowed(A)).does(["append tool_started call_1_1_0"]);
    rig.holding = false;
    rig.crash().does([
        "append incarnation_began, tool_ended call_1_1_0 not_started, result, notice crashed",
        "append request_sent 2.1",
        "send 2.1",
    ]);
}

#[test]
fn results_that_were_written_down_stay_and_the_model_is_asked() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed(A));
    rig.holding = true;
    rig.on(finishes(A, CallOutcome::Ok));
    rig.commit().does(["append request_sent 1.2"]);
    rig.holding = false;
    rig.crash().does(["append request_sent 2.1", "send 2.1"]);
}

#[test]
fn an_interrupt_that_was_being_carried_out_is_forgotten_and_the_turn_goes_on() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed(A));
    rig.give(Input::Interrupt);
    rig.crash_in_call(A, CallFact::Unknown)
        .ends_with("send 2.1");
}

#[test]
fn a_graceful_restart_goes_on_too_and_counts_as_no_crash() {
    let mut rig = Rig::called(&["shell"]);
    rig.give(Input::Stop);
    // The call had not started: the new process runs it.
    rig.take_over(After::Restart, |_| {})
        .does(["prepare call_1_1_0"]);
    assert_eq!(rig.machine.agent().turn.as_ref().unwrap().crashes, 0);
}

/// After three attempts in total without progress, the turn is lost.
#[test]
fn three_tries_without_progress_and_the_turn_is_lost() {
    let mut rig = Rig::asked();
    rig.crash().ends_with("send 2.1");
    rig.crash().ends_with("send 3.1");
    rig.crash().does([
        "append incarnation_began, request_ended lost, turn_ended lost, checkpoint_set (ends 3.1)",
    ]);
    let last = rig.machine.agent().last_turn.as_ref().unwrap();
    assert_eq!(last.status, TurnStatus::Lost);
    rig.prompt("are you there?").ends_with("send 4.1");
}

#[test]
fn a_finished_message_is_progress() {
    let mut rig = Rig::asked();
    rig.crash();
    rig.crash().ends_with("send 3.1");
    rig.on(calls(&["shell"]));
    rig.crash().ends_with("send 4.1");
    rig.crash().ends_with("send 5.1");
    rig.crash().ends_with(
        "append incarnation_began, request_ended lost, turn_ended lost, checkpoint_set (ends 5.1)",
    );
}

/// A result that recovery writes is not progress of the turn.
#[test]
fn a_call_that_a_crash_took_is_no_progress() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed(A));
    rig.crash_in_call(A, CallFact::Unknown)
        .ends_with("send 2.1");
    assert_eq!(rig.machine.agent().turn.as_ref().unwrap().crashes, 1);
    rig.crash().ends_with("send 3.1");
    rig.crash().ends_with(
        "append incarnation_began, request_ended lost, turn_ended lost, checkpoint_set (ends 3.1)",
    );
}

/// An approved call no longer has a turn that could run it.
#[test]
fn a_lost_turn_leaves_no_call_for_the_next_one_to_run() {
    let mut rig = Rig::called(&["shell"]);
    rig.on(super::harness::prepared(A, Prepared::Ask(String::new())));
    rig.decide(Decision::Allow);
    rig.crash().ends_with("prepare call_1_1_0 with consent");
    rig.crash().ends_with("prepare call_1_1_0 with consent");
    rig.crash().does([
        "append incarnation_began, tool_ended call_1_1_0 not_started, result, notice crashed, turn_ended lost, checkpoint_set",
    ]);
    rig.prompt("and now?").does([
        "append turn_started, prompts_taken",
        "append request_sent 4.1",
        "send 4.1",
    ]);
    assert!(
        words(&rig).contains("given up"),
        "and it is not told to go on"
    );
    assert!(!words(&rig).contains("Continue with the task"));
}

#[test]
fn on_crash_wait_pauses_the_turn_and_every_crash_after_that_changes_nothing() {
    let mut rig = Rig::with(|spec, _| spec.on_crash = OnCrash::Wait);
    rig.prompt("hi");
    rig.crash()
        .does(["append incarnation_began, request_ended lost, turn_paused crash (ends 2.1)"]);
    for _ in 0..5 {
        rig.crash().does([]);
    }
    rig.give(Input::Continue).ends_with("send 8.1");
}

#[test]
fn on_crash_wait_does_not_pause_a_restart() {
    let mut rig = Rig::with(|spec, _| spec.on_crash = OnCrash::Wait);
    rig.prompt("hi");
    rig.take_over(After::Restart, |_| {}).ends_with("send 3.1");
}

#[test]
fn a_failure_that_ends_the_turn_ends_it_after_a_crash_too() {
    let mut rig = Rig::asked();
    rig.holding = true;
    rig.on(fails(FailureClass::Rejected));
    rig.commit()
        .does(["append turn_ended failed rejected, checkpoint_set"]);
    rig.holding = false;
    rig.crash()
        .does(["append turn_ended failed rejected, checkpoint_set"]);
}

/// A machine is a function of the journal: after a crash at any point, the same turn continues.
#[test]
fn a_turn_that_dies_after_every_event_has_one_beginning_and_one_end() {
    let mut rig = Rig::asked();
    rig.on(calls(&["shell"]));
    rig.crash().ends_with("send 2.1");
    rig.on(says("done"));
    let count =
        |kind: &dyn Fn(&Body) -> bool| rig.journal.events.iter().filter(|e| kind(&e.body)).count();
    assert_eq!(count(&|body| matches!(body, Body::TurnStarted(_))), 1);
    assert_eq!(count(&|body| matches!(body, Body::TurnEnded(_))), 1);
    assert_eq!(count(&|body| matches!(body, Body::ToolEnded(_))), 1);
}
