//! A reset or a stop that begins while work is in progress: the turn ends as interrupted, and no new turn begins
//! before the reset is withdrawn or the agent is started again.

use super::harness::{Act, Rig, allowed, finishes, prepared, says, text};
use crate::event::*;
use crate::id::OpId;
use crate::message::CallOutcome;
use crate::turn::{Input, Prepared};

const A: &str = "call_1_1_0";
const CLOSED: &str = "append notice interrupted, turn_ended interrupted, checkpoint_set";
const OP: OpId = OpId::from_bytes([9; 16]);

/// The reset has begun, and no hook refused it.
fn reset() -> Vec<Body> {
    let step = ResetStep::PreReset;
    vec![began(), ResetStepped { op: OP, step }.into()]
}

fn began() -> Body {
    ResetBegan {
        op: OP,
        to: ResetTo::Fresh,
        force: false,
        kill_background: false,
        keep_queue: false,
        clear_log: false,
        skip_hooks: false,
        grace_ms: 1000,
        was_awake: true,
        source: ResetSource::User,
    }
    .into()
}

fn withdrawn() -> Body {
    let why = ResetRefusal::StillActive;
    ResetWithdrawn { op: OP, why }.into()
}

fn stop() -> Body {
    AgentStopped {}.into()
}

/// What holds the agent back, and what lets it continue.
fn both() -> [(Vec<Body>, Body); 2] {
    let started = AgentStarted {}.into();
    [(reset(), withdrawn()), (vec![stop()], started)]
}

#[track_caller]
fn is_interrupted(rig: &Rig) {
    let last = rig.machine.agent().last_turn.as_ref().unwrap();
    assert_eq!(last.status, TurnStatus::Interrupted);
    assert!(rig.machine.agent().turn.is_none());
}

#[test]
fn a_reply_that_streams_is_let_go_of_and_the_next_prompt_waits() {
    for (held, free) in both() {
        let mut rig = Rig::asked();
        rig.write(held).does(["cancel 1.1"]);
        let partial = text("half a sen");
        rig.on(Act::Cancelled { partial }).does([
            "append request_ended interrupted, message interrupted (ends 1.1)",
            CLOSED,
        ]);
        is_interrupted(&rig);
        rig.prompt("are you there?").does([]);
        rig.prompt_as(PromptMode::Steer, "or not?").does([]);
        rig.prompt_as(PromptMode::Interrupt, "now!").does([]);
        rig.give(Input::Continue).does([]);
        rig.write(vec![free]).ends_with("send 1.2");
    }
}

/// A PreReset hook may refuse the reset, and then nothing has been stopped.
#[test]
fn while_hooks_are_asked_the_turn_goes_on_and_new_prompts_wait() {
    let mut rig = Rig::asked();
    rig.write(vec![began()]).does([]);
    rig.prompt_as(PromptMode::Steer, "or not?").does([]);
    rig.prompt_as(PromptMode::Interrupt, "now!").does([]);
    assert!(rig.machine.agent().needs_process());
    rig.on(says("done")).does([
        "append request_ended completed, message complete, turn_ended completed, checkpoint_set (ends 1.1)",
    ]);
    assert!(!rig.machine.agent().needs_process());
    rig.write(vec![withdrawn()]).ends_with("send 1.2");
}

#[test]
fn a_tool_that_runs_is_told_to_end() {
    for (held, _) in both() {
        let mut rig = Rig::called(&["shell"]);
        rig.on(allowed(A));
        rig.write(held).does(["cancel call_1_1_0"]);
        rig.on(finishes(A, CallOutcome::Interrupted))
            .does(["append tool_ended call_1_1_0 interrupted, result", CLOSED]);
        is_interrupted(&rig);
    }
}

#[test]
fn a_question_that_waits_is_withdrawn() {
    for (held, _) in both() {
        let mut rig = Rig::called(&["shell"]);
        rig.on(prepared(A, Prepared::Ask(String::new())));
        assert_eq!(rig.machine.agent().approvals.waiting().count(), 1);
        rig.write(held).does([
            "append tool_ended call_1_1_0 interrupted, result, notice interrupted, turn_ended interrupted, checkpoint_set",
        ]);
        assert_eq!(rig.machine.agent().approvals.waiting().count(), 0);
        is_interrupted(&rig);
    }
}

#[test]
fn a_turn_whose_start_is_on_its_way_ends_before_anything_is_sent() {
    for (held, _) in both() {
        let mut rig = Rig::new();
        rig.holding = true;
        rig.prompt("hi")
            .does(["append turn_started, prompts_taken"]);
        rig.write(held).does([]);
        rig.commit().does([CLOSED]);
        rig.commit().does([]);
        is_interrupted(&rig);
        assert!(rig.sent.is_empty());
    }
}

#[test]
fn a_request_that_is_on_its_way_to_the_journal_never_leaves() {
    for (held, _) in both() {
        let mut rig = Rig::new();
        rig.holding = true;
        rig.prompt("hi")
            .does(["append turn_started, prompts_taken"]);
        rig.commit().does(["append context"]);
        rig.commit().does(["append request_sent 1.1"]);
        rig.write(held).does([]);
        rig.commit().does(["append request_ended interrupted, notice interrupted, turn_ended interrupted, checkpoint_set (ends 1.1)"]);
        rig.commit().does([]);
        is_interrupted(&rig);
        assert!(rig.sent.is_empty());
    }
}

#[test]
fn a_turn_that_ends_by_itself_meanwhile_has_ended_well() {
    let mut rig = Rig::asked();
    rig.holding = true;
    rig.on(says("done")).completes();
    rig.write(reset()).does([]);
    rig.commit().does([]);
    let last = rig.machine.agent().last_turn.as_ref().unwrap();
    assert_eq!(last.status, TurnStatus::Completed);
}

#[test]
fn an_idle_agent_is_held_back_and_stops_when_it_is_told_to() {
    let mut rig = Rig::new();
    rig.write(reset()).does([]);
    rig.prompt("hi").does([]);
    rig.give(Input::Stop).does(["stopped"]);
}

/// The process that is told to stop ends the turn first, because no other process can.
#[test]
fn a_stop_and_an_order_to_end_leave_no_turn_behind() {
    let mut rig = Rig::asked();
    rig.write(vec![stop()]).does(["cancel 1.1"]);
    rig.give(Input::Stop).does([]);
    let partial = text("");
    rig.on(Act::Cancelled { partial }).does([
        "append request_ended interrupted (ends 1.1)",
        CLOSED,
        "stopped",
    ]);
    is_interrupted(&rig);
}

#[test]
fn a_process_that_comes_after_a_crash_ends_the_turn_and_does_not_go_on_with_it() {
    for (held, free) in both() {
        let mut rig = Rig::asked();
        rig.journal.turn = None;
        for body in held {
            rig.journal.push(body);
        }
        rig.crash().does([
            "append incarnation_began, request_ended lost (ends 1.1)",
            CLOSED,
        ]);
        is_interrupted(&rig);
        assert_eq!(rig.sent.len(), 1);
        rig.prompt("next").does([]);
        rig.write(vec![free]).ends_with("send 2.1");
    }
}

#[test]
fn a_turn_that_waits_after_a_crash_ends_too() {
    let mut rig = Rig::asked();
    let reason = PauseReason::Crash;
    rig.write(vec![TurnPaused { reason }.into()]);
    rig.on(says("done"));
    rig.write(reset()).ends_with(CLOSED);
    is_interrupted(&rig);
}

#[test]
fn without_its_key_the_turn_waits_and_goes_on_once_there_is_one() {
    let mut rig = Rig::with(|_, policy| policy.missing_key = Some("set SOME_KEY".to_owned()));
    rig.prompt("hi").does([
        "append turn_started, prompts_taken",
        "append note, turn_paused missing_key",
    ]);
    assert!(rig.sent.is_empty());
    assert!(rig.machine.agent().waits_for_user());
    rig.prompt("hello?").does([]);
    // The key is still missing.
    rig.give(Input::Continue).does([
        "append turn_continued",
        "append note, turn_paused missing_key",
    ]);
    rig.policy.missing_key = None;
    rig.take_over(After::Restart, |_| {}).does([]);
    rig.give(Input::Continue).ends_with("send 3.1");
    rig.on(says("yes"));
    assert_eq!(
        rig.machine.agent().last_turn.as_ref().unwrap().status,
        TurnStatus::Completed
    );
}
