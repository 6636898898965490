//! The running turn: attempts, crashes, calls, time.

use crate::event::*;
use crate::fixture::{Journal, approval, request, turn};
use crate::id::{CallId, Incarnation};
use crate::message::CallOutcome;
use crate::state::Turn;
use crate::time::Timestamp;
use crate::usage::Usage;

fn in_turn() -> Journal {
    let mut journal = Journal::new();
    journal.start_turn(1);
    journal
}

fn turn_of(journal: &Journal) -> Turn {
    journal.state().turn.expect("a turn is running")
}

fn try_once(journal: &mut Journal, n: u64, purpose: Purpose, outcome: RequestOutcome) {
    journal.send(request(1, n), purpose);
    journal.push(RequestEnded {
        request: request(1, n),
        outcome,
        usage: Usage::default(),
        estimated: false,
        cost: None,
        provider_request: None,
    });
}

fn failed(class: FailureClass) -> RequestOutcome {
    RequestOutcome::Failed {
        class,
        status: None,
        retry_after_ms: None,
    }
}

fn crash(journal: &mut Journal) {
    let after = After::Crash;
    let incarnation = Incarnation(journal.head().0);
    journal.push(IncarnationBegan::new(incarnation, after));
}

fn end_call(journal: &mut Journal, outcome: CallOutcome) {
    let call = CallId::new("a");
    journal.push(ToolEnded::new(call, outcome));
}

#[test]
fn answers_count_as_iterations_and_nothing_else_does() {
    let mut journal = in_turn();
    try_once(&mut journal, 1, Purpose::Answer, RequestOutcome::Completed);
    try_once(&mut journal, 2, Purpose::Compact, RequestOutcome::Completed);
    let overloaded = failed(FailureClass::Overloaded);
    try_once(&mut journal, 3, Purpose::Answer, overloaded);
    try_once(&mut journal, 4, Purpose::Answer, RequestOutcome::Lost);
    assert_eq!(turn_of(&journal).iterations, 1);
}

#[test]
fn failures_add_up_until_something_succeeds() {
    let mut journal = in_turn();
    for n in 1..=2 {
        try_once(
            &mut journal,
            n,
            Purpose::Answer,
            failed(FailureClass::Dropped),
        );
    }
    assert_eq!(turn_of(&journal).failures, 2);
    assert_eq!(turn_of(&journal).last_failure, Some(FailureClass::Dropped));
    try_once(
        &mut journal,
        3,
        Purpose::Answer,
        RequestOutcome::Interrupted,
    );
    assert_eq!(turn_of(&journal).failures, 2);
    try_once(&mut journal, 4, Purpose::Answer, RequestOutcome::Completed);
    let turn = turn_of(&journal);
    assert_eq!((turn.failures, turn.last_failure), (0, None));
}

#[test]
fn the_end_of_another_request_leaves_the_one_that_is_out() {
    let mut journal = in_turn();
    journal.send(request(1, 2), Purpose::Answer);
    journal.push(RequestEnded {
        request: request(1, 1),
        outcome: failed(FailureClass::Rejected),
        usage: Usage::default(),
        estimated: true,
        cost: None,
        provider_request: None,
    });
    let turn = turn_of(&journal);
    assert_eq!(turn.in_flight.unwrap().request, request(1, 2));
    assert_eq!(
        (turn.failures, turn.spent.requests),
        (0, 1),
        "but it is charged"
    );
}

#[test]
fn crashes_add_up_until_there_is_progress() {
    let mut journal = in_turn();
    crash(&mut journal);
    crash(&mut journal);
    assert_eq!(turn_of(&journal).crashes, 2);
    let mut with_result = journal.clone();
    end_call(&mut with_result, CallOutcome::Ok);
    assert_eq!(turn_of(&with_result).crashes, 0);
    let completed = RequestOutcome::Completed;
    try_once(&mut journal, 1, Purpose::Answer, completed);
    assert_eq!(turn_of(&journal).crashes, 0);
}

/// A result that recovery wrote after a crash is not progress of the turn.
#[test]
fn an_unknown_outcome_is_no_progress() {
    for outcome in [CallOutcome::Unknown, CallOutcome::NotStarted] {
        let mut journal = in_turn();
        crash(&mut journal);
        end_call(&mut journal, outcome);
        assert_eq!(turn_of(&journal).crashes, 1);
    }
}

#[test]
fn starts_and_restarts_are_no_crashes() {
    let mut journal = in_turn();
    for after in [After::Start, After::Restart] {
        let incarnation = Incarnation(9);
        journal.push(IncarnationBegan::new(incarnation, after));
    }
    assert_eq!(turn_of(&journal).crashes, 0);
    assert_eq!(journal.state().incarnation, Incarnation(9));
}

#[test]
fn a_turn_that_waits_for_user_is_not_being_tried() {
    let mut journal = in_turn();
    assert!(!journal.state().waits_for_user());
    let (asked, call) = (approval(1), CallId::new("a"));
    journal.push(ApprovalRequested::new(asked, call));
    assert!(journal.state().waits_for_user());
    crash(&mut journal);
    assert_eq!(turn_of(&journal).crashes, 0);
    let decision = Decision::Allow;
    journal.push(ApprovalAnswered::new(asked, decision));
    assert!(!journal.state().waits_for_user());
    crash(&mut journal);
    assert_eq!(turn_of(&journal).crashes, 1);
    let reason = PauseReason::Crash;
    journal.push(TurnPaused { reason });
    crash(&mut journal);
    assert_eq!(turn_of(&journal).crashes, 1);
}

#[test]
fn continue_gives_it_all_its_tries_again() {
    let mut journal = in_turn();
    crash(&mut journal);
    try_once(
        &mut journal,
        1,
        Purpose::Answer,
        failed(FailureClass::Unauthorized),
    );
    let reason = PauseReason::MissingKey;
    journal.push(TurnPaused { reason });
    journal.push(TurnContinued {});
    let turn = turn_of(&journal);
    assert_eq!((turn.paused, turn.crashes, turn.failures), (None, 0, 0));
    assert_eq!(turn.last_failure, None);
}

#[test]
fn a_turn_takes_the_time_from_its_start_to_its_end() {
    let mut journal = in_turn();
    journal.at = Timestamp::from_millis(3_500);
    journal.end_turn(TurnStatus::Completed);
    let state = journal.state();
    assert_eq!(state.spending.lifetime.busy_ms, 2_500);
    let conversation = state.tree.current_conversation().unwrap();
    assert_eq!((conversation.spent.busy_ms, conversation.turns), (2_500, 1));
    let last = state.last_turn.unwrap();
    assert_eq!((last.id, last.ended_at), (turn(1), journal.at));
}

/// goose#7472, #9461: order is `seq`, never the clock.
#[test]
fn a_clock_that_was_set_back_takes_no_time() {
    let mut journal = in_turn();
    journal.at = Timestamp::from_millis(-86_400_000);
    journal.end_turn(TurnStatus::Completed);
    assert_eq!(journal.state().spending.lifetime.busy_ms, 0);
}

#[test]
fn the_end_withdraws_what_was_asked_in_the_turn() {
    let mut journal = in_turn();
    let (approval, call) = (approval(1), CallId::new("a"));
    journal.push(ApprovalRequested::new(approval, call));
    journal.end_turn(TurnStatus::Interrupted);
    assert_eq!(journal.state().approvals.iter().count(), 0);
}

#[test]
fn events_of_another_turn_change_nothing_in_this_one() {
    let mut journal = in_turn();
    let before = turn_of(&journal);
    journal.turn = Some(turn(2));
    journal.send(request(1, 1), Purpose::Answer);
    end_call(&mut journal, CallOutcome::Ok);
    journal.push(TurnEnded::with(TurnStatus::Completed));
    assert_eq!(turn_of(&journal), before);
    assert_eq!(journal.state().anomalies, 3);
}
