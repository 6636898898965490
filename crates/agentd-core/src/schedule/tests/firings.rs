//! Which due time is handled next, and how: missed ones, overlaps, clocks that are set back, two due at once.

use super::{at, cron, every};
use crate::event::*;
use crate::fixture::{Journal, prompt_id};
use crate::id::{OpId, PromptId, ScheduleId};
use crate::message::Block;
use crate::schedule::{Firing, MOST_CAUGHT_UP, Verdict, events, key, next_firing, next_times};
use crate::state::AgentState;
use crate::time::Timestamp;
use uuid::Uuid;

const DAY_MS: i64 = 86_400_000;

fn schedule(n: u128) -> ScheduleId {
    ScheduleId::new(Uuid::from_u128(0x5C00 + n))
}

fn nine(day: u32) -> Timestamp {
    at(&format!("2026-01-{day:02}T09:00:00Z"))
}

/// Daily at nine, first on the fifth of January.
fn daily(n: u128) -> ScheduleAdded {
    ScheduleAdded {
        schedule: schedule(n),
        name: format!("s{n}"),
        rule: cron("0 9 * * *", "UTC"),
        action: ScheduleAction::Prompt,
        missed: MissedPolicy::Once,
        overlap: OverlapPolicy::Skip,
        next: Some(nine(5)),
    }
}

fn with(added: ScheduleAdded) -> Journal {
    let mut journal = Journal::new();
    add(&mut journal, added);
    journal
}

fn add(journal: &mut Journal, added: ScheduleAdded) {
    let schedule = added.schedule;
    journal.push(added);
    let blocks = vec![Block::text("look at the logs")];
    journal.push(SchedulePrompt { schedule, blocks });
}

fn due(journal: &Journal, now: Timestamp) -> Option<Firing> {
    next_firing(&journal.state(), now).map(Result::unwrap)
}

/// Appends a firing as the daemon does. Its prompt has the given number.
fn fire(journal: &mut Journal, firing: &Firing, n: u128) {
    let prompt = prompt_id(n);
    let state = journal.state();
    let lines = match firing.verdict {
        Verdict::Act => {
            let prompt = Some(prompt);
            let fired = firing.fired(FiringOutcome::Fired { prompt, op: None });
            let blocks = vec![Block::text("look at the logs")];
            let prompt = prompt.map(|prompt| Prompt { prompt, blocks });
            events(&state, fired, None, prompt).unwrap()
        }
        Verdict::Skip(why) => {
            let fired = firing.fired(FiringOutcome::Skipped { why });
            events(&state, fired, None, None).unwrap()
        }
    };
    for (_, body) in lines {
        journal.push(body);
    }
    assert_eq!(journal.state().anomalies, 0);
}

/// The turn that answers queued prompts.
fn answer(journal: &mut Journal, turn: u128, prompts: Vec<PromptId>) {
    journal.start_turn(turn);
    journal.push(PromptsTaken { prompts });
    journal.end_turn(TurnStatus::Completed);
}

#[test]
fn a_due_time_fires_once_and_only_then() {
    let mut journal = with(daily(1));
    let before = Timestamp::from_millis(nine(5).as_millis() - 1);
    assert_eq!(due(&journal, before), None);
    let state = journal.state();
    assert_eq!(state.schedule_due_at(), Some(nine(5)));
    let firing = due(&journal, nine(5)).unwrap();
    assert_eq!(
        firing,
        Firing {
            schedule: schedule(1),
            due: nine(5),
            verdict: Verdict::Act,
            missed: 0,
            next: Some(nine(6)),
        }
    );
    fire(&mut journal, &firing, 1);
    assert_eq!(due(&journal, nine(5)), None);
    let state = journal.state();
    let known = state.schedules.get(schedule(1)).unwrap();
    assert_eq!((known.last_due, known.next), (Some(nine(5)), Some(nine(6))));
    let accepted = state.inbox.by_key(&key(schedule(1), nine(5)));
    assert_eq!(accepted.map(|(prompt, _)| prompt), Some(prompt_id(1)));
    // The same due time in a second event does not count, and is noticed.
    let outcome = FiringOutcome::Skipped {
        why: SkippedBecause::Missed,
    };
    journal.push(firing.fired(outcome));
    let again = journal.state();
    assert_eq!(again.anomalies, 1);
    assert_eq!(again.schedules, state.schedules);
}

#[test]
fn a_week_of_downtime_by_policy() {
    let now = at("2026-01-12T08:00:00Z");
    let once = due(&with(daily(1)), now).unwrap();
    assert_eq!((once.due, once.verdict), (nine(11), Verdict::Act));
    assert_eq!((once.missed, once.next), (6, Some(nine(12))));

    let skip = ScheduleAdded {
        missed: MissedPolicy::Skip,
        ..daily(1)
    };
    let skipped = due(&with(skip.clone()), now).unwrap();
    assert_eq!(
        skipped.verdict,
        Verdict::Skip(SkippedBecause::Missed),
        "{skipped:?}"
    );
    assert_eq!((skipped.due, skipped.missed), (nine(11), 6));
    assert_eq!(skipped.next, Some(nine(12)));
    // A moment after a due time it is on time, also after a downtime.
    let late = Timestamp::from_millis(nine(11).as_millis() + 59_000);
    assert_eq!(due(&with(skip), late).unwrap().verdict, Verdict::Act);

    let mut all = with(ScheduleAdded {
        missed: MissedPolicy::All,
        overlap: OverlapPolicy::Queue,
        ..daily(1)
    });
    for day in 5..=11 {
        let firing = due(&all, now).unwrap();
        assert_eq!((firing.due, firing.verdict), (nine(day), Verdict::Act));
        assert_eq!((firing.missed, firing.next), (0, Some(nine(day + 1))));
        fire(&mut all, &firing, u128::from(day));
    }
    assert_eq!(due(&all, now), None);
    assert_eq!(all.state().inbox.waiting().len(), 7);
}

#[test]
fn at_most_a_hundred_missed_due_times_are_caught_up() {
    let from = at("2026-01-01T00:00:00Z");
    let hour = 3_600_000;
    let mut journal = with(ScheduleAdded {
        rule: every(hour, from),
        missed: MissedPolicy::All,
        overlap: OverlapPolicy::Queue,
        next: Some(from.plus(hour)),
        ..daily(1)
    });
    let spec = crate::spec::AgentSpec {
        limits: crate::spec::Limits {
            max_queue: 1000,
            ..crate::spec::Limits::default()
        },
        ..crate::spec::AgentSpec::default()
    };
    journal.push(SpecSet {
        spec: Box::new(spec),
    });
    // 168 due times in a week.
    let now = from.plus(7 * 24 * hour);
    let first = due(&journal, now).unwrap();
    assert_eq!(first.verdict, Verdict::Skip(SkippedBecause::Missed));
    assert_eq!((first.due, first.missed), (from.plus(68 * hour), 67));
    fire(&mut journal, &first, 0);
    let mut fired = Vec::new();
    while let Some(firing) = due(&journal, now) {
        assert_eq!(firing.verdict, Verdict::Act);
        fire(&mut journal, &firing, 1 + fired.len() as u128);
        fired.push(firing.due);
    }
    assert_eq!(fired.len(), MOST_CAUGHT_UP);
    let expected: Vec<Timestamp> = (69..=168).map(|n| from.plus(n * hour)).collect();
    assert_eq!(fired, expected);
}

#[test]
fn a_clock_that_is_set_back_fires_nothing_twice() {
    let mut journal = with(daily(1));
    let firing = due(&journal, nine(5)).unwrap();
    fire(&mut journal, &firing, 1);
    answer(&mut journal, 1, vec![prompt_id(1)]);
    // Ten minutes, and three days, before.
    for back in [600_000, 3 * DAY_MS] {
        let now = Timestamp::from_millis(nine(5).as_millis() - back);
        assert_eq!(due(&journal, now), None);
    }
    // The same instant again.
    assert_eq!(due(&journal, nine(5)), None);
    assert_eq!(due(&journal, nine(6)).unwrap().due, nine(6));
}

#[test]
fn two_schedules_that_are_due_at_once_both_fire_in_their_order() {
    let mut journal = with(daily(1));
    add(&mut journal, daily(2));
    let first = due(&journal, nine(5)).unwrap();
    assert_eq!(first.schedule, schedule(1));
    fire(&mut journal, &first, 1);
    let second = due(&journal, nine(5)).unwrap();
    assert_eq!((second.schedule, second.due), (schedule(2), nine(5)));
    fire(&mut journal, &second, 2);
    assert_eq!(due(&journal, nine(5)), None);
    let state = journal.state();
    let waiting: Vec<PromptId> = state.inbox.waiting().map(|it| it.prompt).collect();
    assert_eq!(waiting, [prompt_id(1), prompt_id(2)]);
    // The one that has been due for longer comes first, whichever was added first.
    let mut journal = with(daily(1));
    let earlier = ScheduleAdded {
        next: Some(nine(4)),
        ..daily(2)
    };
    add(&mut journal, earlier);
    assert_eq!(due(&journal, nine(5)).unwrap().schedule, schedule(2));
}

#[test]
fn an_overlap_is_skipped_or_queued_by_policy() {
    let mut journal = with(daily(1));
    let firing = due(&journal, nine(5)).unwrap();
    fire(&mut journal, &firing, 1);
    // It is queued, then it is in a turn.
    let skip = Verdict::Skip(SkippedBecause::Overlap);
    assert_eq!(due(&journal, nine(6)).unwrap().verdict, skip);
    let mut in_turn = journal.clone();
    in_turn.start_turn(1);
    let prompts = vec![prompt_id(1)];
    in_turn.push(PromptsTaken { prompts });
    let overlapping = due(&in_turn, nine(7)).unwrap();
    assert_eq!((overlapping.verdict, overlapping.due), (skip, nine(7)));
    assert_eq!(overlapping.missed, 1);
    fire(&mut in_turn, &overlapping, 2);
    assert_eq!(due(&in_turn, nine(7)), None);
    // When it is answered, the next due time fires again.
    in_turn.end_turn(TurnStatus::Completed);
    assert_eq!(due(&in_turn, nine(8)).unwrap().verdict, Verdict::Act);

    let mut queues = with(ScheduleAdded {
        overlap: OverlapPolicy::Queue,
        ..daily(1)
    });
    let firing = due(&queues, nine(5)).unwrap();
    fire(&mut queues, &firing, 1);
    assert_eq!(due(&queues, nine(6)).unwrap().verdict, Verdict::Act);
}

#[test]
fn a_reset_waits_for_the_end_of_the_turn() {
    for action in [ScheduleAction::Reset, ScheduleAction::Fresh] {
        let mut journal = with(ScheduleAdded { action, ..daily(1) });
        journal.start_turn(1);
        journal.prompt(1, "something else");
        assert_eq!(due(&journal, nine(5)), None);
        assert_eq!(journal.state().schedule_due_at(), None);
        journal.end_turn(TurnStatus::Completed);
        assert_eq!(journal.state().schedule_due_at(), Some(nine(5)));
        assert_eq!(due(&journal, nine(5)).unwrap().verdict, Verdict::Act);
    }
}

#[test]
fn a_fresh_prompt_belongs_to_the_new_conversation() {
    let journal = with(ScheduleAdded {
        action: ScheduleAction::Fresh,
        ..daily(1)
    });
    let firing = due(&journal, nine(5)).unwrap();
    let op = OpId::from_bytes([8; 16]);
    let order = ResetBegan {
        op,
        to: ResetTo::Fresh,
        force: false,
        kill_background: false,
        keep_queue: true,
        clear_log: false,
        skip_hooks: false,
        grace_ms: 1,
        was_awake: false,
        source: ResetSource::Schedule,
    };
    let prompt = prompt_id(1);
    let fired = firing.fired(FiringOutcome::Fired {
        prompt: Some(prompt),
        op: Some(op),
    });
    let blocks = vec![Block::text("look at the logs")];
    let lines = events(
        &journal.state(),
        fired,
        Some(order),
        Some(Prompt { prompt, blocks }),
    );
    let kinds: Vec<Kind> = lines.unwrap().iter().map(|(_, body)| body.kind()).collect();
    let expected = [
        Kind::ScheduleFired,
        Kind::ResetBegan,
        Kind::Note,
        Kind::PromptQueued,
        Kind::Prompt,
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn a_schedule_waits_while_the_agent_is_stopped_or_its_queue_is_full() {
    let mut journal = with(daily(1));
    journal.push(AgentStopped {});
    assert_eq!(due(&journal, nine(8)), None);
    assert_eq!(journal.state().schedule_due_at(), None);
    journal.push(AgentStarted {});
    // The due times of the meantime are missed ones.
    let firing = due(&journal, nine(8)).unwrap();
    assert_eq!((firing.due, firing.missed), (nine(8), 3));

    let mut full = with(daily(1));
    for n in 0..100 {
        full.queue(prompt_id(100 + n), PromptMode::Queue, "wait");
    }
    assert_eq!(due(&full, nine(5)), None);
    answer(&mut full, 1, vec![prompt_id(100)]);
    assert_eq!(due(&full, nine(5)).unwrap().verdict, Verdict::Act);
}

#[test]
fn a_pause_is_no_downtime() {
    let mut journal = with(daily(1));
    let schedule = schedule(1);
    let why = PausedBecause::User;
    journal.push(SchedulePaused { schedule, why });
    assert_eq!(due(&journal, nine(8)), None);
    let state = journal.state();
    let known = state.schedules.get(schedule).unwrap();
    assert_eq!(next_times(known, 3), []);
    let next = known.rule.next_after(nine(8)).unwrap();
    journal.push(ScheduleResumed { schedule, next });
    assert_eq!(due(&journal, nine(8)), None);
    let firing = due(&journal, nine(9)).unwrap();
    assert_eq!((firing.due, firing.missed), (nine(9), 0));
    let state = journal.state();
    let known = state.schedules.get(schedule).unwrap();
    assert_eq!(next_times(known, 3), [nine(9), nine(10), nine(11)]);
    journal.push(ScheduleRemoved { schedule });
    assert_eq!(due(&journal, nine(9)), None);
    assert!(journal.state().schedules.is_empty());
}

fn paused(state: &AgentState) -> Option<PausedBecause> {
    state.schedules.get(schedule(1)).unwrap().paused
}

#[test]
fn an_imported_or_archived_agent_has_no_active_schedule() {
    let mut imported = with(daily(1));
    let reason = HoldReason::Imported;
    imported.push(AgentHeld { reason });
    assert_eq!(paused(&imported.state()), Some(PausedBecause::Imported));
    imported.push(AgentReleased { kept: Vec::new() });
    imported.push(AgentStarted {});
    assert_eq!(paused(&imported.state()), Some(PausedBecause::Imported));
    assert_eq!(due(&imported, nine(8)), None);

    let mut archived = with(daily(1));
    archived.push(AgentArchived {});
    archived.push(AgentRestored {});
    assert_eq!(paused(&archived.state()), Some(PausedBecause::Archived));
    assert_eq!(due(&archived, nine(8)), None);
}

#[test]
fn a_purge_takes_the_schedules_whose_text_it_deletes() {
    let mut journal = with(daily(1));
    add(&mut journal, daily(2));
    add(
        &mut journal,
        ScheduleAdded {
            action: ScheduleAction::Reset,
            ..daily(3)
        },
    );
    let old = journal.conversation;
    journal.conversation = crate::fixture::conversation(2);
    journal.begin(BeginSource::Reset, Some(old), None);
    journal.push(ScheduleMoved {
        schedule: schedule(2),
    });
    journal.push(SchedulePrompt {
        schedule: schedule(2),
        blocks: vec![Block::text("look at the logs")],
    });
    journal.push(Purged::conversation(old, 3));
    let state = journal.state();
    let left: Vec<ScheduleId> = state.schedules.iter().map(|known| known.id).collect();
    assert_eq!(left, [schedule(2), schedule(3)]);
}

#[test]
fn a_rule_that_is_broken_is_named() {
    let journal = with(ScheduleAdded {
        rule: cron("0 9 * * *", "Europe/Nowhere"),
        ..daily(1)
    });
    let found = next_firing(&journal.state(), nine(5)).unwrap();
    assert_eq!(found.unwrap_err().0, schedule(1));
}
