//! `continue`: a new turn continues one that ended as `limited`, and a paused turn continues.

use super::harness::{Rig, allowed, calls, finishes, says};
use crate::event::{
    BeginSource, Body, ConversationBegan, PauseReason, SpecSet, TurnContinued, TurnPaused,
    TurnStatus,
};
use crate::fixture;
use crate::message::CallOutcome;
use crate::spec::{AgentSpec, OnCrash};
use crate::turn::Input;

/// A turn that ended because it was limited to one iteration.
fn limited() -> Rig {
    let mut rig = Rig::with(|spec, _| spec.limits.max_iterations = 1);
    rig.prompt("hi");
    rig.on(calls(&["shell"]));
    rig.on(allowed("call_2_1_0"));
    rig.on(finishes("call_2_1_0", CallOutcome::Ok))
        .ends_with("append turn_ended limited iterations, checkpoint_set");
    rig
}

/// A turn that waits after a crash.
fn paused() -> Rig {
    let mut rig = Rig::with(|spec, _| spec.on_crash = OnCrash::Wait);
    rig.prompt("hi");
    rig.crash()
        .does(["append incarnation_began, request_ended lost, turn_paused crash (ends 2.1)"]);
    rig
}

#[test]
fn a_limited_turn_goes_on_as_a_new_one_without_a_new_prompt() {
    let mut rig = limited();
    let old = rig.machine.agent().last_turn.as_ref().unwrap().id;
    rig.give(Input::Continue).does([
        "append turn_started resumes",
        "append request_sent 2.2",
        "send 2.2",
    ]);
    assert_eq!(
        rig.machine.agent().turn.as_ref().unwrap().resumes,
        Some(old)
    );
    let (first, second) = (&rig.sent[0].1.messages, &rig.sent[1].1.messages);
    assert!(second.starts_with(first));
    assert_eq!(second.len(), 3, "the prompt, the call, its result");
    rig.on(says("done")).completes();
}

#[test]
fn a_raised_limit_counts_at_once() {
    let mut rig = Rig::with(|spec, _| spec.limits.conversation.tokens = Some(100));
    rig.prompt("hi")
        .ends_with("append turn_ended limited conversation_tokens, checkpoint_set");
    let mut spec = AgentSpec::default();
    spec.limits.conversation.tokens = Some(100_000);
    let spec = Box::new(spec);
    rig.write(vec![SpecSet { spec }.into()]).does([]);
    rig.give(Input::Continue).ends_with("send 2.1");
}

#[test]
fn a_limit_that_was_not_raised_ends_it_again() {
    let mut rig = Rig::with(|spec, _| spec.limits.conversation.tokens = Some(100));
    rig.prompt("hi");
    rig.give(Input::Continue).does([
        "append turn_started resumes",
        "append turn_ended limited conversation_tokens, checkpoint_set",
    ]);
}

#[test]
fn it_goes_before_prompts_that_wait() {
    let mut rig = limited();
    rig.holding = true;
    rig.give(Input::Continue)
        .does(["append turn_started resumes"]);
    rig.prompt("later").does([]);
    rig.holding = false;
    rig.commit().ends_with("send 2.2");
    assert_eq!(rig.machine.agent().inbox.waiting().len(), 1);
}

#[test]
fn it_does_not_take_those_prompts_along() {
    let mut rig = Rig::with(|spec, _| spec.limits.conversation.tokens = Some(100));
    rig.holding = true;
    rig.prompt("hi");
    rig.commit().does(["append context"]);
    rig.commit()
        .does(["append turn_ended limited conversation_tokens, checkpoint_set"]);
    rig.prompt("later").does([]);
    rig.give(Input::Continue).does([]);
    rig.commit().does(["append turn_started resumes"]);
    rig.commit()
        .does(["append turn_ended limited conversation_tokens, checkpoint_set"]);
    assert_eq!(rig.machine.agent().inbox.waiting().len(), 1);
}

#[test]
fn a_turn_that_ended_otherwise_is_not_taken_up() {
    let mut rig = Rig::asked();
    rig.give(Input::Continue).does([]);
    rig.on(says("done")).completes();
    rig.give(Input::Continue).does([]);
    let mut rig = Rig::new();
    rig.give(Input::Continue).does([]);
}

/// A `continue` that has no effect when it is requested must not take effect later.
#[test]
fn said_to_a_turn_that_runs_it_is_not_remembered() {
    let mut rig = Rig::with(|spec, _| spec.limits.max_iterations = 1);
    rig.prompt("hi");
    rig.give(Input::Continue).does([]);
    rig.on(calls(&["shell"]));
    rig.on(allowed("call_2_1_0"));
    rig.on(finishes("call_2_1_0", CallOutcome::Ok))
        .ends_with("append turn_ended limited iterations, checkpoint_set");
    assert!(rig.machine.agent().turn.is_none());
}

#[test]
fn said_while_the_end_is_written_down_it_counts() {
    let mut rig = Rig::with(|spec, _| spec.limits.conversation.tokens = Some(100));
    rig.holding = true;
    rig.prompt("hi");
    rig.commit().does(["append context"]);
    rig.commit()
        .ends_with("append turn_ended limited conversation_tokens, checkpoint_set");
    rig.give(Input::Continue).does([]);
    rig.commit().does(["append turn_started resumes"]);
}

#[test]
fn a_limited_turn_of_another_conversation_is_not_continued() {
    let mut rig = limited();
    let old = rig.journal.conversation;
    rig.journal.conversation = fixture::conversation(2);
    rig.journal.push(ConversationBegan {
        source: BeginSource::Reset,
        parent: Some(old),
        from: None,
        op: None,
    });
    rig.take_over(crate::event::After::Start, |_| {}).does([]);
    rig.give(Input::Continue).does([]);
    assert!(rig.machine.agent().turn.is_none());
}

#[test]
fn a_paused_turn_waits_whatever_comes() {
    let mut rig = paused();
    rig.prompt("anybody there?").does([]);
    rig.give(Input::BackoffOver).does([]);
    let turn = rig.machine.agent().turn.as_ref().unwrap();
    assert_eq!(turn.paused, Some(PauseReason::Crash));
}

/// `agentd continue NAME` continues a turn that waits after a crash.
#[test]
fn a_paused_turn_continues_and_the_continue_is_durable() {
    let mut rig = paused();
    rig.give(Input::Continue).does([
        "append turn_continued",
        "append request_sent 3.1",
        "send 3.1",
    ]);
    rig.on(says("done")).completes();
    let last = rig.machine.agent().last_turn.as_ref().unwrap();
    assert_eq!(last.status, TurnStatus::Completed);
}

#[test]
fn a_continue_that_another_process_recorded_counts_too() {
    let mut rig = paused();
    rig.write(vec![TurnContinued {}.into()])
        .does(["append request_sent 3.1", "send 3.1"]);
}

#[test]
fn said_twice_it_is_written_once() {
    let mut rig = paused();
    rig.holding = true;
    rig.give(Input::Continue).does(["append turn_continued"]);
    rig.give(Input::Continue).does([]);
    rig.commit().does(["append request_sent 3.1"]);
    rig.commit().does(["send 3.1"]);
    let continued = |event: &&crate::event::Event| matches!(event.body, Body::TurnContinued(_));
    assert_eq!(rig.journal.events.iter().filter(continued).count(), 1);
}

/// The user has looked at it, so it has all its attempts again, whatever the last failure was.
#[test]
fn a_turn_that_was_hopeless_is_tried_again() {
    let mut rig = Rig::asked();
    rig.holding = true;
    rig.on(super::harness::fails(
        crate::event::FailureClass::Unauthorized,
    ));
    let reason = PauseReason::MissingKey;
    rig.write(vec![TurnPaused { reason }.into()]).does([]);
    rig.holding = false;
    rig.commit().does([]);
    rig.give(Input::Continue).ends_with("send 1.2");
}
