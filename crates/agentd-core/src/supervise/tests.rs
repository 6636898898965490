//! Supervision without processes: what is decided, and that carrying it out comes to an end.

use super::*;
use crate::event::*;
use crate::fixture::{Journal, agent, prompt_id};
use crate::id::{CallId, Incarnation, OpId};
use uuid::Uuid;

/// Carries out actions as the daemon does, and returns them.
fn settled(state: &AgentState, known: &mut Situation) -> Vec<Action> {
    let mut actions = Vec::new();
    while let Some(action) = next(state, known) {
        actions.push(action);
        assert!(
            actions.len() < 12,
            "it does not come to an end: {actions:?}"
        );
        match action {
            Action::DropRequest => known.wanted = false,
            Action::CarryOutReset => known.resetting = true,
            Action::CompleteRestore => known.restoring = true,
            Action::ResetAutomatically => known.resetting_automatically = true,
            Action::Report => known.reporting = true,
            Action::StartIdleTimer(_) => known.has_idle_timer = true,
            Action::StopIdleTimer => known.has_idle_timer = false,
            Action::BeginTurns => known.holds_turns = false,
            Action::ReplaceProcess => {
                known.wanted = true;
                end(known);
            }
            Action::StartProcess => {
                known.wanted = false;
                known.process = Process::Starting;
            }
            Action::EndProcess => {
                end(known);
                break;
            }
        }
    }
    actions
}

fn end(known: &mut Situation) {
    if known.process != Process::Absent {
        known.process = Process::Stopping;
    }
}

fn up() -> Situation {
    Situation {
        process: Process::Running,
        is_connected: true,
        ..Situation::default()
    }
}

fn with_prompt() -> Journal {
    let mut journal = Journal::new();
    journal.queue(prompt_id(1), PromptMode::Queue, "hello");
    journal
}

fn order() -> ResetBegan {
    ResetBegan {
        op: OpId::new(Uuid::from_u128(1)),
        to: ResetTo::Fresh,
        force: false,
        kill_background: false,
        keep_queue: false,
        clear_log: false,
        skip_hooks: false,
        grace_ms: 1,
        was_awake: false,
        source: ResetSource::User,
    }
}

fn with_spec(mut journal: Journal, change: impl FnOnce(&mut crate::spec::AgentSpec)) -> Journal {
    let mut spec = crate::spec::AgentSpec::default();
    change(&mut spec);
    let spec = Box::new(spec);
    journal.push(SpecSet { spec });
    journal
}

#[test]
fn an_agent_with_a_prompt_gets_a_process_and_one_without_gets_none() {
    let mut known = Situation::default();
    assert_eq!(settled(&Journal::new().state(), &mut known), []);
    let state = with_prompt().state();
    assert_eq!(settled(&state, &mut known), [Action::StartProcess]);
    assert_eq!(settled(&state, &mut known), []);
}

#[test]
fn a_verb_may_want_a_process_without_work_unless_the_agent_is_stopped() {
    let mut journal = Journal::new();
    let wanted = Situation {
        wanted: true,
        ..Situation::default()
    };
    let actions = settled(&journal.state(), &mut wanted.clone());
    assert_eq!(actions, [Action::StartProcess]);
    journal.push(AgentStopped {});
    assert_eq!(settled(&journal.state(), &mut wanted.clone()), []);
}

#[test]
fn no_process_starts_before_the_hooks_of_its_session_have_ended() {
    let mut known = Situation {
        awaits_hooks: true,
        ..Situation::default()
    };
    let state = with_prompt().state();
    assert_eq!(settled(&state, &mut known), []);
    known.awaits_hooks = false;
    assert_eq!(settled(&state, &mut known), [Action::StartProcess]);
}

#[test]
fn an_archived_agent_gets_no_process() {
    let mut journal = with_prompt();
    journal.push(AgentArchived {});
    assert_eq!(settled(&journal.state(), &mut Situation::default()), []);
}

#[test]
fn a_held_agent_runs_nothing() {
    let mut journal = with_prompt();
    journal.push(AgentHeld {
        reason: HoldReason::Imported,
    });
    let mut known = Situation {
        wanted: true,
        ..up()
    };
    let actions = settled(&journal.state(), &mut known);
    assert_eq!(actions, [Action::DropRequest, Action::EndProcess]);
    assert_eq!(settled(&journal.state(), &mut known), []);
}

#[test]
fn a_stopped_agent_ends_its_turn_before_its_process() {
    let mut journal = with_prompt();
    journal.start_turn(1);
    journal.push(AgentStopped {});
    assert_eq!(settled(&journal.state(), &mut up()), []);
    // Only a process can end a turn.
    let actions = settled(&journal.state(), &mut Situation::default());
    assert_eq!(actions, [Action::StartProcess]);
    journal.end_turn(TurnStatus::Interrupted);
    let mut known = up();
    assert_eq!(
        settled(&journal.state(), &mut known)[0],
        Action::StartIdleTimer(idle())
    );
    assert_eq!(known.process, Process::Stopping);
}

fn idle() -> Duration {
    Duration::from_millis(crate::spec::AgentSpec::default().idle_ms)
}

#[test]
fn a_process_that_may_have_missed_its_order_is_told_again() {
    let mut journal = Journal::new();
    journal.push(AgentStopped {});
    let mut known = Situation {
        process: Process::Stopping,
        ..Situation::default()
    };
    assert_eq!(settled(&journal.state(), &mut known), [Action::EndProcess]);
    known.is_connected = true;
    assert_eq!(settled(&journal.state(), &mut known), []);
}

#[test]
fn an_idle_process_ends_after_a_time_and_that_of_a_one_shot_agent_at_once() {
    let mut known = up();
    let actions = settled(&Journal::new().state(), &mut known);
    assert_eq!(actions, [Action::StartIdleTimer(idle())]);
    // Work stops the timer.
    let actions = settled(&with_prompt().state(), &mut known);
    assert_eq!(actions, [Action::StopIdleTimer]);
    let mut oneshot = Journal::empty();
    let (name, mode) = ("run-1".to_owned(), Mode::Oneshot);
    oneshot.push(AgentCreated { name, mode });
    oneshot.begin(BeginSource::Create, None, None);
    let actions = settled(&oneshot.state(), &mut up());
    assert_eq!(actions, [Action::StartIdleTimer(Duration::ZERO)]);
}

#[test]
fn a_background_task_keeps_its_process_until_that_has_died_too_often() {
    let mut journal = Journal::new();
    journal.leave_task(1);
    let state = journal.state();
    assert_eq!(settled(&state, &mut up()), []);
    let mut known = Situation::default();
    assert_eq!(settled(&state, &mut known), [Action::StartProcess]);
    known.starts.deaths = DEATHS;
    known.process = Process::Absent;
    assert_eq!(settled(&state, &mut known), []);
}

#[test]
fn new_variables_replace_the_process_between_two_turns_and_not_within_one() {
    let mut journal = with_prompt();
    journal.start_turn(1);
    let changed = Situation {
        has_new_env: true,
        ..up()
    };
    assert_eq!(settled(&journal.state(), &mut changed.clone()), []);
    journal.end_turn(TurnStatus::Completed);
    let mut known = changed;
    let actions = settled(&Journal::new().state(), &mut known);
    assert!(actions.contains(&Action::ReplaceProcess), "{actions:?}");
    assert!(known.wanted && known.process == Process::Stopping);
    // One that has not connected yet gets them when it does.
    let mut coming = Situation {
        is_connected: false,
        ..changed
    };
    assert_eq!(settled(&Journal::new().state(), &mut coming), []);
}

#[test]
fn a_turn_that_waits_for_its_key_gets_a_new_process_with_the_key() {
    let mut journal = with_prompt();
    journal.start_turn(1);
    journal.push(TurnPaused {
        reason: PauseReason::MissingKey,
    });
    let mut known = Situation {
        has_new_env: true,
        ..Situation::default()
    };
    let actions = settled(&journal.state(), &mut known);
    assert_eq!(actions, [Action::ReplaceProcess, Action::StartProcess]);
    known.process = Process::Absent;
    // Not again and again, if that process always dies before it connects.
    known.starts.deaths = DEATHS;
    assert_eq!(settled(&journal.state(), &mut known), []);
    known.starts.forgive();
    known.has_new_env = false;
    assert_eq!(settled(&journal.state(), &mut known), []);
}

#[test]
fn a_reset_is_carried_out_once_at_a_time() {
    let mut journal = Journal::new();
    journal.push(order());
    let mut known = Situation::default();
    let actions = settled(&journal.state(), &mut known);
    assert_eq!(actions, [Action::CarryOutReset]);
    assert_eq!(settled(&journal.state(), &mut known), []);
}

#[test]
fn a_subagent_that_has_ended_reports_to_its_parent_once_at_a_time() {
    let mut journal = Journal::new();
    journal.push(SubagentOf {
        parent: agent(2),
        call: CallId::new("a"),
        prompt: prompt_id(1),
        background: false,
    });
    journal.start_turn(1);
    journal.prompt(1, "work");
    journal.end_turn(TurnStatus::Failed);
    let state = journal.state();
    assert!(state.owes_report());
    let mut known = Situation::default();
    assert_eq!(settled(&state, &mut known), [Action::Report]);
    assert_eq!(settled(&state, &mut known), []);
}

#[test]
fn a_daemon_that_shuts_down_begins_nothing() {
    let mut journal = with_prompt();
    journal.push(order());
    let mut known = Situation {
        is_ending: true,
        wanted: true,
        ..Situation::default()
    };
    assert_eq!(settled(&journal.state(), &mut known), []);
    assert!(!is_still_needed(&with_prompt().state(), true));
    assert!(is_still_needed(&with_prompt().state(), false));
}

#[test]
fn the_pause_before_a_start_doubles_and_has_a_limit() {
    let pause = |deaths| Starts { deaths }.pause();
    assert_eq!(pause(0), Duration::ZERO);
    assert_eq!(pause(1), Duration::from_millis(100));
    assert_eq!(pause(2), Duration::from_millis(200));
    assert_eq!(pause(6), Duration::from_millis(3_200));
    assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
}

#[test]
fn a_process_that_dies_at_its_start_too_often_fails_the_agent() {
    let state = with_prompt().state();
    let mut starts = Starts::default();
    for _ in 1..DEATHS {
        let after = exited(&state, &mut starts, Exit::Signal, Some(Duration::ZERO));
        assert_eq!(after, AfterExit::Restart);
    }
    let after = exited(&state, &mut starts, Exit::NotStarted, None);
    assert_eq!(after, AfterExit::GiveUp(FailCause::CrashLoop));
    starts.forgive();
    assert!(!starts.has_died());
}

#[test]
fn a_process_that_lived_long_is_counted_anew() {
    let state = with_prompt().state();
    let mut starts = Starts { deaths: DEATHS - 1 };
    let lived = Some(LONG_LIFE + Duration::from_millis(1));
    assert_eq!(
        exited(&state, &mut starts, Exit::Signal, lived),
        AfterExit::Restart
    );
    assert_eq!(starts.deaths(), 1);
}

#[test]
fn an_exit_that_would_repeat_itself_fails_the_agent_at_once() {
    let state = with_prompt().state();
    for code in CANNOT {
        let mut starts = Starts::default();
        let after = exited(&state, &mut starts, Exit::Code(code), Some(Duration::ZERO));
        assert_eq!(after, AfterExit::GiveUp(FailCause::CannotRun));
    }
}

#[test]
fn an_agent_that_is_not_to_be_restarted_fails_when_it_has_work() {
    let never = |spec: &mut crate::spec::AgentSpec| spec.restart = Restart::Never;
    let after = |journal: Journal| {
        let state = with_spec(journal, never).state();
        exited(
            &state,
            &mut Starts::default(),
            Exit::Code(1),
            Some(Duration::ZERO),
        )
    };
    assert_eq!(
        after(with_prompt()),
        AfterExit::GiveUp(FailCause::NotRestarted)
    );
    assert_eq!(after(Journal::new()), AfterExit::Restart);
}

#[test]
fn the_end_of_an_adopted_process_is_judged_by_the_journal() {
    let mut journal = with_prompt();
    let (incarnation, after) = (Incarnation(1), After::Start);
    let full_access = false;
    journal.push(IncarnationBegan {
        incarnation,
        after,
        full_access,
    });
    let mut starts = Starts::default();
    let state = journal.state();
    assert!(!state.at_rest);
    assert_eq!(
        exited(&state, &mut starts, Exit::Unknown, None),
        AfterExit::Restart
    );
    let after = exited(&state, &mut starts, Exit::Code(0), None);
    assert_eq!((after, starts.deaths()), (AfterExit::Nothing, 0));
}

/// A restore that an earlier daemon began is completed before a prompt is answered.
#[test]
fn a_restore_of_files_is_completed_before_the_next_turn() {
    let mut journal = with_prompt();
    journal.push(FilesRestoreBegan {
        op: OpId::new(uuid::Uuid::from_u128(7)),
        undo_of: None,
        to: None,
        to_in: None,
        files: 1,
        kept_bytes: 0,
    });
    let mut known = Situation::default();
    let actions = settled(&journal.state(), &mut known);
    assert_eq!(actions, [Action::CompleteRestore]);
    assert!(!journal.state().needs_process());
    journal.push(FilesRestoreEnded {
        op: OpId::new(uuid::Uuid::from_u128(7)),
        outcome: RestoreOutcome::Done,
        restored: 1,
        failed: 0,
    });
    known.restoring = false;
    let actions = settled(&journal.state(), &mut known);
    assert_eq!(actions, [Action::StartProcess]);
}

#[test]
fn a_turn_that_has_to_wait_gets_no_process_and_one_that_has_begun_does() {
    let held_back = || Situation {
        is_held_back: true,
        ..Situation::default()
    };
    let mut journal = with_prompt();
    assert_eq!(settled(&journal.state(), &mut held_back()), []);
    let mut wanted = Situation {
        wanted: true,
        ..held_back()
    };
    let actions = settled(&journal.state(), &mut wanted);
    assert_eq!(actions, [Action::StartProcess]);
    journal.start_turn(1);
    let actions = settled(&journal.state(), &mut held_back());
    assert_eq!(actions, [Action::StartProcess]);
}

/// Regression: the ends of its tasks were not recorded before its next turn could begin, maybe a day later.
#[test]
fn an_agent_whose_turn_has_to_wait_has_a_process_for_its_tasks() {
    let mut journal = Journal::new();
    journal.leave_task(1);
    journal.queue(prompt_id(1), PromptMode::Queue, "hello");
    let state = journal.state();
    let mut known = Situation {
        is_held_back: true,
        ..Situation::default()
    };
    assert_eq!(settled(&state, &mut known), [Action::StartProcess]);
    // It is connected, and was told to begin no turn.
    (known.process, known.is_connected) = (Process::Running, true);
    known.holds_turns = true;
    assert_eq!(settled(&state, &mut known), []);
    known.is_held_back = false;
    assert_eq!(settled(&state, &mut known), [Action::BeginTurns]);
    assert_eq!(settled(&state, &mut known), []);
}

#[test]
fn a_process_of_another_build_ends_between_two_turns() {
    let outdated = || Situation {
        is_outdated: true,
        ..up()
    };
    let mut journal = with_prompt();
    journal.start_turn(1);
    assert_eq!(settled(&journal.state(), &mut outdated()), []);
    journal.end_turn(TurnStatus::Completed);
    let actions = settled(&journal.state(), &mut outdated());
    assert!(actions.contains(&Action::EndProcess), "{actions:?}");
    journal.leave_task(2);
    let actions = settled(&journal.state(), &mut outdated());
    assert!(!actions.contains(&Action::EndProcess), "{actions:?}");
}

/// Every combination of what the daemon may know.
fn situations() -> impl Iterator<Item = Situation> {
    let processes = [
        Process::Absent,
        Process::Starting,
        Process::Running,
        Process::Stopping,
    ];
    processes.into_iter().flat_map(|process| {
        (0..4096u32).map(move |bits| {
            let is_set = |n: u32| bits & (1 << n) != 0;
            Situation {
                process,
                is_connected: is_set(0),
                wanted: is_set(1),
                awaits_hooks: is_set(2),
                has_new_env: is_set(3),
                resetting: is_set(4),
                resetting_automatically: is_set(5),
                // The test of a restore sets it.
                restoring: false,
                reporting: is_set(6),
                has_idle_timer: is_set(7),
                is_ending: is_set(8),
                is_held_back: is_set(10),
                holds_turns: is_set(9),
                is_outdated: is_set(11),
                starts: Starts {
                    deaths: if is_set(9) { DEATHS } else { 0 },
                },
            }
        })
    })
}

/// The states after every sequence of three steps that supervision reads.
fn states() -> Vec<AgentState> {
    let steps = 9usize;
    let sequences = (0..steps.pow(3)).map(|n| [n % steps, n / steps % steps, n / steps / steps]);
    sequences.map(|sequence| after(&sequence).state()).collect()
}

fn after(steps: &[usize]) -> Journal {
    let mut journal = Journal::new();
    for (n, step) in (1..).zip(steps) {
        match step {
            0 => journal.queue(prompt_id(n), PromptMode::Queue, "hello"),
            1 if journal.turn.is_none() => journal.start_turn(n),
            2 if journal.turn.is_some() => journal.end_turn(TurnStatus::Completed),
            3 => drop(journal.push(AgentStopped {})),
            4 => drop(journal.push(AgentStarted {})),
            5 => drop(journal.push(order())),
            6 if journal.turn.is_none() => drop(journal.leave_task(n)),
            7 => drop(journal.push(AgentArchived {})),
            8 if journal.turn.is_some() => {
                let reason = PauseReason::MissingKey;
                journal.push(TurnPaused { reason });
            }
            _ => {}
        }
    }
    journal
}

/// Carrying out what is decided comes to an end, and then nothing is left to do but to repeat an order that may have
/// been lost.
#[test]
fn every_situation_comes_to_rest() {
    for state in states() {
        for known in situations() {
            let mut settling = known;
            let actions = settled(&state, &mut settling);
            let again = settled(&state, &mut settling);
            let is_at_rest = again
                .iter()
                .all(|action| matches!(action, Action::StopIdleTimer | Action::EndProcess));
            assert!(is_at_rest, "{known:?}: {actions:?}, then {again:?}");
        }
    }
}

#[test]
fn a_process_is_started_only_where_there_is_none() {
    for state in states() {
        for known in situations() {
            if next(&state, &known) == Some(Action::StartProcess) {
                assert_eq!(known.process, Process::Absent);
                assert!(!state.archived && !state.is_held() && !known.is_ending);
            }
        }
    }
}
