//! What is a notice, which turn it belongs to, and that a stored fold continues where it stopped.

use super::*;
use crate::event::*;
use crate::fixture::*;
use crate::id::Seq;
use crate::spec::{AgentSpec, Budget};
use crate::state::AgentState;
use crate::usage::Usage;

fn notices(journal: &Journal) -> Vec<(u64, Topic, Asked)> {
    let mut routed = Routed::default();
    let mut state = AgentState::new(journal.agent);
    let mut found = Vec::new();
    for event in &journal.events {
        state.apply(event);
        let reached = state.near_limits.reached_by(event.seq).unwrap();
        if let Some(notice) = of_event(&mut routed, event, &reached) {
            found.push((event.seq.0, notice.topic, notice.asked));
        }
    }
    found
}

fn routed(n: u128) -> PromptRouted {
    PromptRouted {
        prompt: prompt_id(n),
        notify: true,
        binding: None,
    }
}

/// Regression: an interrupted turn was none, though its sender wanted to know how it ends.
#[test]
fn a_turn_that_ends_is_a_notice() {
    for (status, expected) in [
        (TurnStatus::Completed, Some(Topic::Completed)),
        (TurnStatus::Failed, Some(Topic::Failed)),
        (TurnStatus::Limited, Some(Topic::Limited)),
        (TurnStatus::Lost, Some(Topic::Lost)),
        (TurnStatus::Interrupted, Some(Topic::Interrupted)),
    ] {
        let mut journal = Journal::new();
        journal.start_turn(1);
        journal.prompt(1, "hello");
        journal.end_turn(status);
        let last = journal.head().0;
        let expected: Vec<_> = expected
            .map(|it| (last, it, Asked::No))
            .into_iter()
            .collect();
        assert_eq!(notices(&journal), expected, "{status:?}");
    }
}

#[test]
fn a_compaction_and_a_withdrawn_turn_are_none() {
    let mut journal = Journal::new();
    for ended in [
        TurnEnded {
            compacts: true,
            ..TurnEnded::with(TurnStatus::Completed)
        },
        TurnEnded {
            withdrawn: true,
            ..TurnEnded::with(TurnStatus::Completed)
        },
    ] {
        journal.start_turn(1);
        journal.push(ended);
        journal.turn = None;
    }
    assert_eq!(notices(&journal), []);
}

#[test]
fn the_user_is_told_what_needs_them() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    journal.prompt(1, "hello");
    let asked = journal.push(ApprovalRequested::new(
        approval(1),
        crate::id::CallId::new("c1"),
    ));
    let paused = journal.push(TurnPaused {
        reason: PauseReason::MissingKey,
    });
    let failed = journal.push(AgentFailed {
        cause: FailCause::CrashLoop,
    });
    let damaged = journal.push(Quarantined {
        from: failed.seq,
        through: failed.seq,
    });
    let expected = [
        (asked.seq.0, Topic::Approval, Asked::No),
        (paused.seq.0, Topic::Approval, Asked::No),
        (failed.seq.0, Topic::Failed, Asked::No),
        (damaged.seq.0, Topic::Trouble, Asked::No),
    ];
    assert_eq!(notices(&journal), expected);
}

#[test]
fn a_prompt_with_a_notification_marks_its_own_turn_and_no_other() {
    let mut journal = Journal::new();
    for n in 1..=3 {
        if n == 2 {
            journal.push(routed(n));
        }
        journal.start_turn(n);
        journal.prompt(n, "hello");
        journal.end_turn(TurnStatus::Completed);
    }
    let asked: Vec<Asked> = notices(&journal).into_iter().map(|it| it.2).collect();
    assert_eq!(asked, [Asked::No, Asked::Yes, Asked::No]);
}

#[test]
fn a_turn_that_continues_a_limited_one_is_still_asked_for() {
    let mut journal = Journal::new();
    journal.push(routed(1));
    journal.start_turn(1);
    journal.prompt(1, "hello");
    journal.end_turn(TurnStatus::Limited);
    journal.turn = Some(turn(2));
    journal.push(TurnStarted {
        resumes: Some(turn(1)),
        compacts: None,
    });
    journal.end_turn(TurnStatus::Completed);
    let asked: Vec<Asked> = notices(&journal).into_iter().map(|it| it.2).collect();
    assert_eq!(asked, [Asked::Yes, Asked::Yes]);
}

#[test]
fn a_removed_prompt_marks_no_turn() {
    let mut journal = Journal::new();
    journal.push(routed(1));
    journal.queue(prompt_id(1), PromptMode::Queue, "hello");
    journal.push(PromptsRemoved {
        prompts: vec![prompt_id(1)],
    });
    journal.start_turn(2);
    journal.prompt(2, "another");
    journal.end_turn(TurnStatus::Completed);
    assert_eq!(notices(&journal).last().map(|it| it.2), Some(Asked::No));
}

fn request_of(journal: &mut Journal, n: u64, tokens: u64) -> Event {
    let usage = Usage {
        input_tokens: tokens,
        ..Usage::default()
    };
    journal.push(RequestSent {
        request: request(1, n),
        purpose: Purpose::Answer,
        grant: Grant::default(),
    });
    journal.push(RequestEnded {
        request: request(1, n),
        outcome: RequestOutcome::Completed,
        usage,
        estimated: false,
        cost: None,
        provider_request: None,
    })
}

#[test]
fn eighty_percent_of_a_budget_is_one_notice() {
    let mut journal = Journal::new();
    let mut spec = AgentSpec::default();
    spec.limits.day = Budget {
        tokens: Some(100),
        ..Budget::default()
    };
    journal.push(SpecSet {
        spec: Box::new(spec),
    });
    journal.start_turn(1);
    journal.prompt(1, "hello");
    request_of(&mut journal, 1, 79);
    let reached = request_of(&mut journal, 2, 1);
    request_of(&mut journal, 3, 15);
    assert_eq!(
        notices(&journal),
        [(reached.seq.0, Topic::Budget, Asked::No)]
    );
    // On the next day nothing is used at first.
    journal.at = journal.at.plus(24 * 60 * 60 * 1000);
    request_of(&mut journal, 4, 10);
    let again = request_of(&mut journal, 5, 70);
    let found = notices(&journal);
    assert_eq!(found.last().map(|it| it.0), Some(again.seq.0));
    assert_eq!(found.len(), 2);
}

/// An agent with budgets for turns and conversations.
fn with_budgets(turn: u64, conversation: u64) -> Journal {
    let mut journal = Journal::new();
    let mut spec = AgentSpec::default();
    spec.limits.turn.tokens = Some(turn);
    spec.limits.conversation.tokens = Some(conversation);
    journal.push(SpecSet {
        spec: Box::new(spec),
    });
    journal
}

/// A turn with one request of 90 tokens; returns the end of the request.
fn turn_of_90(journal: &mut Journal, n: u64) -> Seq {
    journal.start_turn(u128::from(n));
    journal.prompt(u128::from(n), "hello");
    let ended = request_of(journal, n, 90);
    journal.end_turn(TurnStatus::Completed);
    ended.seq
}

/// A webhook that is down: the messages are made when the state has moved on.
#[test]
fn every_budget_that_was_reached_is_known_after_later_turns() {
    let mut journal = with_budgets(100, 200);
    let first = turn_of_90(&mut journal, 1);
    let second = turn_of_90(&mut journal, 2);
    journal.start_turn(3);
    journal.prompt(3, "hello");
    let small = request_of(&mut journal, 3, 1);
    let near = journal.state().near_limits;
    use LimitKind::{ConversationTokens, TurnTokens};
    assert_eq!(near.reached_by(first), Some(vec![TurnTokens]));
    // Of one turn and of the conversation, by one event.
    let both = Some(vec![TurnTokens, ConversationTokens]);
    assert_eq!(near.reached_by(second), both);
    assert_eq!(near.reached_by(small.seq), Some(vec![]));
    let told = of_event(
        &mut Routed::default(),
        &journal.events[second.0 as usize - 1],
        &[TurnTokens, ConversationTokens],
    );
    let detail = told.map(|notice| notice.detail.budgets);
    assert_eq!(detail, Some(vec![TurnTokens, ConversationTokens]));
}

#[test]
fn what_a_state_no_longer_knows_the_journal_still_does() {
    let mut journal = with_budgets(100, 1_000_000);
    let reached: Vec<Seq> = (1..=70).map(|n| turn_of_90(&mut journal, n)).collect();
    let near = journal.state().near_limits;
    let of_turn = Some(vec![LimitKind::TurnTokens]);
    assert_eq!(near.reached_by(reached[0]), None);
    assert_eq!(near.reached_by(reached[69]), of_turn);
    let mut then = AgentState::new(journal.agent);
    for event in journal.events.iter().take(reached[0].0 as usize) {
        then.apply(event);
    }
    assert_eq!(then.near_limits.reached_by(reached[0]), of_turn);
}

#[test]
fn a_schedule_that_cannot_run_is_a_failure_and_a_pause_by_the_user_is_none() {
    let mut journal = Journal::new();
    let schedule = crate::id::ScheduleId::new(uuid::Uuid::from_u128(7));
    let mut pause = |why| journal.push(SchedulePaused { schedule, why });
    pause(PausedBecause::User);
    let failed = pause(PausedBecause::CannotRun);
    assert_eq!(
        notices(&journal),
        [(failed.seq.0, Topic::Failed, Asked::No)]
    );
}

#[test]
fn a_stored_fold_continues_where_it_stopped() {
    let mut journal = Journal::new();
    journal.push(routed(1));
    journal.start_turn(1);
    journal.prompt(1, "hello");
    journal.end_turn(TurnStatus::Completed);
    for cut in 0..journal.events.len() {
        let mut fold = Routed::default();
        let mut asked = Vec::new();
        for (n, event) in journal.events.iter().enumerate() {
            if n == cut {
                let stored = serde_json::to_string(&fold).unwrap();
                fold = serde_json::from_str(&stored).unwrap();
            }
            asked.extend(of_event(&mut fold, event, &[]).map(|notice| notice.asked));
        }
        assert_eq!(asked, [Asked::Yes], "cut at {cut}");
    }
}
