//! A time limit ends the turn whatever it is doing, as `limited`, and the turn can be continued.

use super::harness::{Act, Rig, allowed, calls, fails, finishes, prepared, says, text};
use super::hooks::invoked_hook;
use crate::event::{Decision, FailureClass, LimitKind, TurnStatus};
use crate::message::CallOutcome;
use crate::time::Timestamp;
use crate::turn::{Hooks, Input, Prepared};

/// An agent that has ten seconds for a turn.
fn rig() -> Rig {
    Rig::with(|spec, _| spec.limits.turn.wall_ms = Some(10_000))
}

fn later(rig: &mut Rig, ms: u64) {
    rig.journal.at = rig.journal.at.plus(ms);
}

/// What a driver sends at the deadline.
fn time_up(rig: &mut Rig) -> Input {
    let now = rig.journal.at;
    let deadline = rig.machine.deadline(now).expect("a deadline");
    rig.journal.at = rig.journal.at.max(deadline.at);
    let (turn, limit) = (deadline.turn, deadline.limit);
    Input::TimeUp { turn, limit }
}

fn last_status(rig: &Rig) -> (TurnStatus, Option<LimitKind>) {
    let last = rig.machine.agent().last_turn.as_ref().expect("a turn");
    (last.status, last.limit)
}

const LIMITED: (TurnStatus, Option<LimitKind>) = (TurnStatus::Limited, Some(LimitKind::TurnTime));

#[test]
fn a_reply_that_streams_is_cut_off_and_kept() {
    let mut rig = rig();
    rig.prompt("hi").ends_with("send 2.1");
    let input = time_up(&mut rig);
    rig.give(input).does(["cancel 2.1"]);
    assert_eq!(rig.machine.deadline(rig.journal.at), None, "it is ending");
    let partial = text("half an ans");
    rig.on(Act::Cancelled { partial }).does([
        "append request_ended interrupted, message interrupted (ends 2.1)",
        "append notice limited, turn_ended limited turn_time, checkpoint_set",
    ]);
    assert_eq!(last_status(&rig), LIMITED);
    // It can be continued, and the model is asked.
    rig.give(Input::Continue).ends_with("send 2.2");
}

#[test]
fn a_tool_that_runs_is_ended_and_one_that_has_not_begun_is_not_run() {
    let mut rig = rig();
    rig.prompt("hi");
    rig.on(calls(&["shell", "shell"]));
    rig.on(allowed("call_2_1_0"));
    let input = time_up(&mut rig);
    rig.give(input).does(["cancel call_2_1_0"]);
    rig.on(finishes("call_2_1_0", CallOutcome::Interrupted))
        .ends_with(
            "append tool_ended call_2_1_1 interrupted, result, notice limited, \
             turn_ended limited turn_time, checkpoint_set",
        );
    rig.give(Input::Continue).ends_with("send 2.2");
}

#[test]
fn a_hook_is_not_waited_for() {
    let mut rig = Rig::with(|spec, policy| {
        spec.limits.turn.wall_ms = Some(10_000);
        policy.hooks = Hooks::Asked;
    });
    let (id, verdict) = (invoked_hook(rig.prompt("hi")), Default::default());
    rig.give(Input::HooksAnswered { id, verdict })
        .ends_with("send 2.1");
    // The Stop hooks do not answer.
    invoked_hook(rig.on(says("answer")));
    let input = time_up(&mut rig);
    rig.give(input)
        .does(["append turn_ended limited turn_time, checkpoint_set"]);
}

#[test]
fn the_wait_before_another_try_ends_too() {
    let mut rig = rig();
    rig.prompt("hi");
    rig.on(fails(FailureClass::Overloaded))
        .ends_with("back off 1");
    let input = time_up(&mut rig);
    rig.give(input)
        .does(["append turn_ended limited turn_time, checkpoint_set"]);
}

/// A driver that was late because it waited for the disk.
#[test]
fn whatever_happens_after_the_deadline_finds_it() {
    let mut rig = rig();
    rig.prompt("hi");
    later(&mut rig, 10_000);
    rig.on(calls(&["shell"]));
    assert_eq!(last_status(&rig), LIMITED);
}

/// A new process has no more time than the previous one.
#[test]
fn a_crash_does_not_give_a_turn_more_time() {
    let mut rig = rig();
    rig.prompt("hi");
    let before = rig.machine.deadline(rig.journal.at).unwrap();
    later(&mut rig, 6_000);
    rig.crash().ends_with("send 3.1");
    assert_eq!(rig.machine.deadline(rig.journal.at), Some(before));
    later(&mut rig, 4_000);
    rig.crash();
    assert_eq!(last_status(&rig), LIMITED);
    assert_eq!(rig.sent.len(), 2);
}

/// The time spent waiting for the user does not count.
#[test]
fn the_clock_stands_still_while_the_turn_waits_for_the_user() {
    let mut rig = rig();
    rig.prompt("hi");
    rig.on(calls(&["shell"]));
    later(&mut rig, 4_000);
    rig.on(prepared("call_2_1_0", Prepared::Ask(String::new())));
    assert_eq!(rig.machine.deadline(rig.journal.at), None);
    later(&mut rig, 3_600_000);
    rig.decide(Decision::Allow);
    let deadline = rig.machine.deadline(rig.journal.at).unwrap();
    let left = deadline.at.since(rig.journal.at);
    assert_eq!(left, 6_000);
    rig.on(allowed("call_2_1_0"));
    rig.on(finishes("call_2_1_0", CallOutcome::Ok));
    rig.on(says("done"));
    let conversation = rig.machine.agent().tree.current_conversation().unwrap();
    assert_eq!(conversation.spent.busy_ms, 4_000);
}

/// Another call runs in the meantime, and must not run forever.
#[test]
fn it_goes_on_while_another_call_runs() {
    let mut rig = rig();
    rig.prompt("hi");
    rig.on(calls(&["read", "read"]));
    rig.on(allowed("call_2_1_0"));
    rig.on(prepared("call_2_1_1", Prepared::Ask(String::new())));
    let deadline = rig.machine.deadline(rig.journal.at).unwrap();
    assert_eq!(deadline.at, Timestamp::from_millis(11_000));
    rig.on(finishes("call_2_1_0", CallOutcome::Ok));
    assert_eq!(rig.machine.deadline(rig.journal.at), None);
}

#[test]
fn the_earliest_limit_counts_and_what_was_used_of_it_before() {
    let mut rig = Rig::with(|spec, _| {
        spec.limits.turn.wall_ms = Some(10_000);
        spec.limits.conversation.wall_ms = Some(12_000);
    });
    rig.prompt("hi");
    later(&mut rig, 5_000);
    rig.on(says("done"));
    rig.prompt("again");
    let deadline = rig.machine.deadline(rig.journal.at).unwrap();
    let left = deadline.at.since(rig.journal.at);
    assert_eq!((left, deadline.limit), (7_000, LimitKind::ConversationTime));
}

#[test]
fn a_turn_that_the_user_has_interrupted_stays_interrupted() {
    let mut rig = rig();
    rig.prompt("hi");
    let input = time_up(&mut rig);
    rig.give(Input::Interrupt);
    rig.give(input);
    let partial = Default::default();
    rig.on(Act::Cancelled { partial });
    assert_eq!(last_status(&rig), (TurnStatus::Interrupted, None));
}
