//! A call that needs the user's approval waits for it. The approval is durable and answered once.

use super::harness::{Act, Rig, allowed, calls, finishes, prepared};
use crate::event::{ApprovalAnswered, Decision, PromptMode};
use crate::message::CallOutcome;
use crate::state::Phase;
use crate::turn::{Input, Prepared};

const A: &str = "call_1_1_0";
const B: &str = "call_1_1_1";

fn asks(call: &str) -> Act {
    prepared(call, Prepared::Ask(String::new()))
}

fn asked(tools: &[&str]) -> Rig {
    let mut rig = Rig::called(tools);
    rig.on(asks(A))
        .does(["append approval_requested call_1_1_0"]);
    rig
}

/// The request for an approval is durable while the call waits.
#[test]
fn a_question_is_durable_and_the_call_waits_for_its_answer() {
    let mut rig = asked(&["shell"]);
    assert_eq!(rig.machine.agent().phase(), Phase::AwaitingApproval);
    rig.prompt("hello?").does([]);
    assert_eq!(rig.machine.agent().approvals.waiting().count(), 1);
}

#[test]
fn an_allowed_call_is_prepared_again_with_consent_and_runs() {
    let mut rig = asked(&["shell"]);
    rig.decide(Decision::Allow)
        .does(["prepare call_1_1_0 with consent"]);
    rig.on(allowed(A))
        .does(["append tool_started call_1_1_0", "run call_1_1_0"]);
    rig.on(finishes(A, CallOutcome::Ok)).ends_with("send 1.2");
    assert_eq!(rig.machine.agent().approvals.iter().count(), 0);
}

#[test]
fn a_denied_call_never_runs_and_the_model_is_told() {
    let mut rig = asked(&["shell"]);
    rig.decide(Decision::Deny).does([
        "append tool_ended call_1_1_0 denied, result",
        "append request_sent 1.2",
        "send 1.2",
    ]);
    assert_eq!(rig.machine.agent().approvals.iter().count(), 0);
}

#[test]
fn the_first_answer_counts() {
    let mut rig = asked(&["shell"]);
    let (&approval, _) = rig.machine.agent().approvals.waiting().next().unwrap();
    rig.decide(Decision::Allow)
        .ends_with("prepare call_1_1_0 with consent");
    let decision = Decision::Deny;
    let mut state = rig.machine.agent().clone();
    let second = rig.journal.push(ApprovalAnswered::new(approval, decision));
    state.apply(&second);
    assert_eq!(state.anomalies, 1, "a second answer is not ours to write");
    let (_, known) = state.approvals.iter().next().unwrap();
    assert_eq!(known.decision, Some(Decision::Allow));
}

#[test]
fn calls_behind_the_question_wait_with_it_and_those_in_front_go_on() {
    let mut rig = Rig::called(&["read", "read", "read"]);
    rig.on(asks(B))
        .does(["append approval_requested call_1_1_1"]);
    rig.on(allowed(A)).ends_with("run call_1_1_0");
    rig.on(finishes(A, CallOutcome::Ok))
        .does(["append tool_ended call_1_1_0 ok, result"]);
    // The third one was already being prepared; it may continue.
    rig.on(allowed("call_1_1_2")).ends_with("run call_1_1_2");
    rig.on(finishes("call_1_1_2", CallOutcome::Ok))
        .does(["append tool_ended call_1_1_2 ok, result"]);
    rig.decide(Decision::Allow)
        .ends_with("prepare call_1_1_1 with consent");
}

#[test]
fn an_unsafe_call_behind_a_question_is_not_prepared_before_the_answer() {
    let mut rig = asked(&["shell", "shell"]);
    rig.decide(Decision::Allow)
        .does(["prepare call_1_1_0 with consent"]);
    rig.on(allowed(A));
    rig.on(finishes(A, CallOutcome::Ok))
        .ends_with("prepare call_1_1_1");
}

/// The earlier call was marked as being prepared, but the effect that prepares it was lost.
#[test]
fn a_denied_call_behind_one_that_is_being_prepared_does_not_lose_it() {
    let mut rig = Rig::called(&["read", "read"]);
    rig.on(asks(A))
        .does(["append approval_requested call_1_1_0"]);
    rig.on(asks(B))
        .does(["append approval_requested call_1_1_1"]);
    let ids: Vec<_> = rig
        .machine
        .agent()
        .approvals
        .waiting()
        .map(|(id, _)| *id)
        .collect();
    let answer = |index: usize, decision| {
        let approval = ids[index];
        ApprovalAnswered::new(approval, decision).into()
    };
    // Both answers are in one append, so the machine sees them at the same time.
    rig.write(vec![answer(1, Decision::Deny)]).does([]);
    rig.write(vec![answer(0, Decision::Allow)]).does([
        "prepare call_1_1_0 with consent",
        "append tool_ended call_1_1_1 denied, result",
    ]);
    rig.on(allowed(A)).ends_with("run call_1_1_0");
    rig.on(finishes(A, CallOutcome::Ok)).ends_with("send 1.2");
}

#[test]
fn questions_that_come_up_during_an_append_are_asked_in_the_next() {
    let mut rig = Rig::called(&["read", "read"]);
    rig.holding = true;
    rig.on(allowed(A)).does(["append tool_started call_1_1_0"]);
    rig.on(asks(B)).does([]);
    rig.commit().does(["append approval_requested call_1_1_1"]);
    rig.commit().does(["run call_1_1_0"]);
}

#[test]
fn an_interrupt_withdraws_the_question_and_answers_the_call() {
    let mut rig = asked(&["shell"]);
    rig.give(Input::Interrupt).does([
        "append tool_ended call_1_1_0 interrupted, result, notice interrupted, turn_ended interrupted, checkpoint_set",
    ]);
    assert_eq!(rig.machine.agent().approvals.iter().count(), 0);
}

/// A pending approval can be answered after any restart.
#[test]
fn a_question_outlives_its_process_and_is_not_asked_again() {
    let mut rig = asked(&["shell"]);
    rig.crash().does([]);
    assert_eq!(rig.machine.agent().phase(), Phase::AwaitingApproval);
    rig.decide(Decision::Allow)
        .does(["prepare call_1_1_0 with consent"]);
    rig.on(allowed(A)).ends_with("run call_1_1_0");
}

#[test]
fn an_answer_that_was_given_before_the_crash_still_counts() {
    let mut rig = asked(&["shell"]);
    rig.decide(Decision::Allow);
    rig.crash().does(["prepare call_1_1_0 with consent"]);
    let mut rig = asked(&["shell"]);
    rig.holding = true;
    rig.decide(Decision::Deny);
    rig.holding = false;
    rig.crash().does([
        "append tool_ended call_1_1_0 denied, result",
        "append request_sent 2.1",
        "send 2.1",
    ]);
}

/// A turn that waits for the user makes no attempts, so reboots do not use them up.
#[test]
fn a_question_outlives_any_number_of_crashes() {
    let mut rig = asked(&["shell"]);
    for _ in 0..5 {
        rig.crash().does([]);
    }
    assert_eq!(rig.machine.agent().turn.as_ref().unwrap().crashes, 0);
    rig.decide(Decision::Allow)
        .ends_with("prepare call_1_1_0 with consent");
    rig.crash().ends_with("prepare call_1_1_0 with consent");
}

#[test]
fn an_approval_is_of_its_turn_alone() {
    let mut rig = asked(&["shell"]);
    rig.prompt_as(PromptMode::Interrupt, "never mind")
        .ends_with("send 1.2");
    rig.on(calls(&["shell"])).ends_with("prepare call_1_2_0");
}
