//! What a daemon derives from an agent's journal: whether it should run, whether it needs a process, and what
//! preceded that process.

use crate::event::*;
use crate::fixture::{self, Journal, approval, prompt_id};
use crate::id::{CallId, Incarnation, OpId};
use crate::state::{Outcome, Phase};

fn op(n: u8) -> OpId {
    OpId::from_bytes([n; 16])
}

fn began(n: u8) -> ResetBegan {
    ResetBegan {
        op: op(n),
        to: ResetTo::Fresh,
        force: false,
        kill_background: false,
        keep_queue: false,
        clear_log: true,
        skip_hooks: false,
        grace_ms: 1,
        was_awake: false,
        source: ResetSource::User,
    }
}

fn stepped(n: u8, step: ResetStep) -> ResetStepped {
    ResetStepped { op: op(n), step }
}

fn queue(journal: &mut Journal, n: u128) {
    journal.queue(prompt_id(n), PromptMode::Queue, "hi");
}

fn crash_loop() -> AgentFailed {
    let cause = FailCause::CrashLoop;
    AgentFailed { cause }
}

#[test]
fn what_was_stopped_stays_stopped_until_it_is_started() {
    let mut journal = Journal::new();
    journal.push(AgentStopped {});
    queue(&mut journal, 1);
    let state = journal.state();
    assert_eq!(
        (state.phase(), state.needs_process()),
        (Phase::Stopped, false)
    );
    journal.push(AgentStarted {});
    let state = journal.state();
    assert_eq!(
        (state.phase(), state.needs_process()),
        (Phase::Running, true)
    );
}

#[test]
fn a_turn_that_is_to_end_needs_a_process_even_where_the_agent_is_to_have_none() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    journal.push(AgentStopped {});
    assert!(journal.state().needs_process());
    journal.end_turn(TurnStatus::Interrupted);
    assert!(!journal.state().needs_process());
    let mut journal = Journal::new();
    journal.start_turn(1);
    let reason = PauseReason::Crash;
    journal.push(TurnPaused { reason });
    assert!(!journal.state().needs_process(), "it waits for the user");
    journal.push(began(1));
    assert!(!journal.state().needs_process(), "hooks are asked first");
    journal.push(stepped(1, ResetStep::PreReset));
    let state = journal.state();
    assert_eq!(
        (state.phase(), state.needs_process()),
        (Phase::Resetting, true)
    );
    journal.end_turn(TurnStatus::Interrupted);
    queue(&mut journal, 1);
    assert!(
        !journal.state().needs_process(),
        "prompts wait for the reset"
    );
}

#[test]
fn a_question_needs_no_process_and_its_answer_does() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    let (asked, call) = (approval(1), CallId::new("a"));
    journal.push(ApprovalRequested::new(asked, call));
    assert!(!journal.state().needs_process());
    journal.push(ApprovalAnswered::new(asked, Decision::Deny));
    assert!(journal.state().needs_process());
}

#[test]
fn an_agent_keeps_its_process_while_a_background_task_runs() {
    let mut journal = Journal::new();
    assert!(!journal.state().keeps_process());
    let task = journal.leave_task(1);
    let state = journal.state();
    assert!(state.keeps_process() && !state.needs_process());
    assert_eq!(state.phase(), Phase::Idle);
    for unless in [
        Body::from(AgentStopped {}),
        crash_loop().into(),
        began(1).into(),
    ] {
        let mut journal = journal.clone();
        journal.push(unless);
        assert!(!journal.state().keeps_process());
    }
    journal.push(TaskEnded::by_itself(task, TaskExit::Code { code: 0 }));
    assert!(!journal.state().keeps_process());
}

#[test]
fn what_failed_is_not_tried_before_it_is_started_or_reset() {
    let mut journal = Journal::new();
    queue(&mut journal, 1);
    journal.push(crash_loop());
    let state = journal.state();
    assert_eq!(
        (state.phase(), state.needs_process()),
        (Phase::Failed, false)
    );
    let mut started = journal.clone();
    started.push(AgentStarted {});
    assert!(started.state().needs_process());
    journal.push(began(1));
    journal.push(stepped(1, ResetStep::Switch));
    assert_eq!(journal.state().failed, None);
    assert_eq!(journal.state().anomalies, 0);
}

/// A reset clears the last error.
#[test]
fn a_turn_that_failed_in_a_conversation_that_was_left_is_no_trouble_any_more() {
    let mut journal = Journal::new();
    let old = journal.conversation;
    journal.start_turn(1);
    journal.end_turn(TurnStatus::Failed);
    assert_eq!(journal.state().phase(), Phase::Failed);
    journal.conversation = fixture::conversation(2);
    journal.begin(BeginSource::Reset, Some(old), None);
    assert_eq!(journal.state().phase(), Phase::Idle);
    journal.conversation = old;
    let (to, direction, op) = (old, Direction::Undo, None);
    journal.push(PointerMoved { to, direction, op });
    assert_eq!(journal.state().phase(), Phase::Failed, "it is back");
}

#[test]
fn a_process_comes_after_a_start_a_crash_or_a_rest() {
    let mut journal = Journal::new();
    assert_eq!(journal.state().after(), After::Start);
    let incarnation = Incarnation(1);
    let after = After::Start;
    journal.push(IncarnationBegan::new(incarnation, after));
    let state = journal.state();
    assert_eq!((state.after(), state.at_rest), (After::Crash, false));
    journal.push(IncarnationEnded { incarnation });
    let state = journal.state();
    assert_eq!((state.after(), state.at_rest), (After::Restart, true));
    let (incarnation, after) = (Incarnation(2), After::Restart);
    journal.push(IncarnationBegan::new(incarnation, after));
    assert_eq!(journal.state().after(), After::Crash);
    assert_eq!(journal.state().anomalies, 0);
    // The end of another incarnation says nothing about this one.
    let incarnation = Incarnation(1);
    journal.push(IncarnationEnded { incarnation });
    let state = journal.state();
    assert_eq!((state.at_rest, state.anomalies), (false, 1));
}

#[test]
fn a_rest_in_the_middle_of_a_turn_is_no_failed_try() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    for n in 1..5 {
        let (incarnation, after) = (Incarnation(n), journal.state().after());
        journal.push(IncarnationBegan::new(incarnation, after));
        journal.push(IncarnationEnded { incarnation });
    }
    assert_eq!(journal.state().turn.unwrap().crashes, 0);
}

#[test]
fn each_reset_is_remembered_with_how_it_went_and_where_the_log_was_cleared() {
    let mut journal = Journal::new();
    let (old, new) = (journal.conversation, fixture::conversation(2));
    let first = journal.push(began(1)).seq;
    let why = ResetRefusal::StillActive;
    let ended = journal.push(ResetWithdrawn { op: op(1), why }).seq;
    let outcome = journal.state().resets.outcome(op(1));
    let began_at = first;
    let expected = Outcome::Withdrawn {
        began: began_at,
        ended,
        why,
    };
    assert_eq!(outcome, Some(expected));
    assert_eq!(journal.state().resets.log_begins(), None);
    let second = journal.push(began(2)).seq;
    let switched = journal.push(stepped(2, ResetStep::Switch)).seq;
    let (op_of, began) = (op(2), second);
    let ended = journal.push(ResetEnded::new(op_of, old, new)).seq;
    let state = journal.state();
    let expected = Outcome::Ended {
        began,
        ended,
        old,
        new,
    };
    assert_eq!(state.resets.outcome(op(2)), Some(expected));
    assert_eq!(state.resets.log_begins(), Some(switched));
    assert_eq!((state.resets.outcome(op(3)), state.anomalies), (None, 0));
}

#[test]
fn a_step_of_another_reset_or_out_of_order_changes_nothing() {
    let mut journal = Journal::new();
    journal.push(stepped(1, ResetStep::Stop));
    journal.push(began(1));
    journal.push(stepped(2, ResetStep::Stop));
    let op_of = op(2);
    let why = ResetRefusal::Hook;
    journal.push(ResetWithdrawn { op: op_of, why });
    assert_eq!(journal.state().anomalies, 3);
    journal.push(stepped(1, ResetStep::Switch));
    journal.push(crash_loop());
    journal.push(stepped(1, ResetStep::Stop));
    journal.push(stepped(1, ResetStep::Switch));
    let state = journal.state();
    let done = state.resets.under_way().unwrap().done;
    assert_eq!((done, state.anomalies), (Some(ResetStep::Switch), 5));
    assert!(state.failed.is_some());
}

/// How the conversation before a reset ended says nothing about the new one.
#[test]
fn a_new_conversation_has_no_last_turn() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    journal.end_turn(TurnStatus::Failed);
    let failed = journal.state();
    assert_eq!(failed.phase(), Phase::Failed);
    assert!(failed.last_turn_here().is_some());
    journal.conversation = fixture::conversation(2);
    let old = failed.tree.current();
    journal.begin(BeginSource::Reset, old, None);
    let state = journal.state();
    assert_eq!(state.tree.current(), Some(fixture::conversation(2)));
    assert_eq!(state.last_turn_here(), None);
    assert_eq!(state.phase(), Phase::Idle);
}

/// Regression: after `reset --clear-log` and `reset --undo`, the log still began at the conversation that was left.
#[test]
fn undo_restores_the_log_that_a_reset_cleared() {
    let mut journal = Journal::new();
    let (old, new) = (journal.conversation, fixture::conversation(2));
    journal.start_turn(1);
    journal.end_turn(TurnStatus::Completed);
    journal.push(began(1));
    journal.conversation = new;
    journal.begin(BeginSource::Reset, Some(old), None);
    let cleared = journal.push(stepped(1, ResetStep::Switch)).seq;
    journal.push(ResetEnded::new(op(1), old, new));
    assert_eq!(journal.state().resets.log_begins(), Some(cleared));
    for (n, to, expected) in [(2, ResetTo::Undo, None), (3, ResetTo::Redo, Some(cleared))] {
        let (from, order) = (journal.conversation, began(n));
        journal.push(ResetBegan {
            to,
            clear_log: false,
            ..order
        });
        let (target, direction) = match to {
            ResetTo::Undo => (old, Direction::Undo),
            _ => (new, Direction::Redo),
        };
        journal.conversation = target;
        let (to, op_of) = (target, Some(op(n)));
        journal.push(PointerMoved {
            to,
            direction,
            op: op_of,
        });
        journal.push(stepped(n, ResetStep::Switch));
        journal.push(ResetEnded::new(op(n), from, target));
        assert_eq!(journal.state().resets.log_begins(), expected);
    }
    assert_eq!(journal.state().anomalies, 0);
}

/// Regression: two resets and one undo ended in an empty conversation.
#[test]
fn a_conversation_without_a_message_is_not_returned_to() {
    let mut journal = Journal::new();
    let first = journal.conversation;
    journal.start_turn(1);
    journal.end_turn(TurnStatus::Completed);
    for n in [2, 3] {
        let old = journal.conversation;
        journal.conversation = fixture::conversation(n);
        journal.begin(BeginSource::Reset, Some(old), None);
    }
    let state = journal.state();
    assert_eq!(state.tree.undo_target(), Some(first));
    assert_eq!((state.tree.len(), state.anomalies), (3, 0));
    // A journal of an earlier build may have returned to the empty one.
    let (to, direction) = (fixture::conversation(2), Direction::Undo);
    journal.conversation = to;
    let op = None;
    journal.push(PointerMoved { to, direction, op });
    let state = journal.state();
    assert_eq!((state.tree.current(), state.anomalies), (Some(to), 0));
    assert_eq!(state.tree.undo_target(), Some(first));
    assert_eq!(state.tree.redo_target(), Some(fixture::conversation(3)));
}
