//! A snapshot and the events after it fold to the same state as all events, for every cut.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by panicking"
)]

use agentd_core::event::{Event, Kind, Position};
use agentd_core::state::{AgentState, Applied};
use agentd_core::window::{Skeleton, Window};
use agentd_testkit::journal::ops::ops;
use agentd_testkit::journal::{Journals, adversarial, driver::JournalDriver};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Takes a snapshot as the store does: the first fold as JSON, the second as a skeleton.
fn through_a_snapshot(
    state: &AgentState,
    window: &Window,
    journals: &Journals,
) -> Result<(AgentState, Window), TestCaseError> {
    let json = serde_json::to_string(state).unwrap();
    let skeleton = serde_json::to_string(&window.skeleton()).unwrap();
    let skeleton: Skeleton = serde_json::from_str(&skeleton).unwrap();
    let find = |at: Position| -> Option<&Event> {
        journals
            .of(at.agent)
            .iter()
            .find(|event| event.seq == at.seq)
    };
    let window = Window::restore(&skeleton, find);
    let window = window.map_err(|missing| TestCaseError::fail(missing.to_string()))?;
    Ok((serde_json::from_str(&json).unwrap(), window))
}

/// At every cut the snapshot equals the state that it was taken of. Folding is a function, so the later events fold to the
/// same. The cuts include those around undo, redo, rewind and fork.
fn check_every_cut(journals: &Journals) -> Result<(), TestCaseError> {
    for (agent, events) in &journals.agents {
        let mut state = AgentState::new(*agent);
        let mut window = Window::new();
        for event in events {
            let moved = state.apply(event) == Applied::PointerMoved;
            let Some(current) = state.tree.current() else {
                continue;
            };
            if moved {
                window = journals.window(*agent, &state, current, state.head);
            } else if event.conversation == current {
                window.apply(event);
            }
            let from_scratch = journals.window(*agent, &state, current, state.head);
            prop_assert_eq!(&window, &from_scratch, "the incremental fold differs");
            let (again, window_again) = through_a_snapshot(&state, &window, journals)?;
            prop_assert_eq!(&again, &state);
            prop_assert_eq!(&window_again, &window);
        }
    }
    Ok(())
}

#[test]
fn a_snapshot_and_its_tail_fold_to_the_same() {
    TestRunner::new(agentd_testkit::cases(600))
        .run(&ops(50), |ops| {
            check_every_cut(&JournalDriver::run(&ops).journals)
        })
        .unwrap();
}

#[test]
fn the_same_holds_for_journals_that_nobody_should_write() {
    TestRunner::new(agentd_testkit::cases(600))
        .run(&adversarial::events(50), |wild| {
            check_every_cut(&adversarial::journal(&wild).1)
        })
        .unwrap();
}

/// Every event is the same after it was written as JSON and read back.
#[test]
fn events_survive_json() {
    TestRunner::new(agentd_testkit::cases(500))
        .run(&ops(40), |ops| {
            for events in JournalDriver::run(&ops).journals.agents.values() {
                for event in events {
                    let line = serde_json::to_string(event).unwrap();
                    let again: Event = serde_json::from_str(&line).unwrap();
                    prop_assert_eq!(event, &again);
                }
            }
            Ok(())
        })
        .unwrap();
}

/// Checks that the random journals contain enough of each kind for the properties to mean something.
#[test]
fn the_journals_hold_stops_rests_and_resets_that_ended_and_that_did_not() {
    let seen = RefCell::new(BTreeMap::<&str, u32>::new());
    TestRunner::new(agentd_testkit::cases(2_000))
        .run(&ops(60), |ops| {
            let driver = JournalDriver::run(&ops);
            for event in driver.journals.agents.values().flatten() {
                *seen.borrow_mut().entry(event.kind().name()).or_default() += 1;
            }
            for (agent, events) in &driver.journals.agents {
                let state = driver.journals.state(*agent, events.len());
                prop_assert_eq!(state.anomalies, 0);
            }
            Ok(())
        })
        .unwrap();
    let seen = seen.into_inner();
    for kind in [
        Kind::AgentStarted,
        Kind::AgentStopped,
        Kind::IncarnationEnded,
        Kind::ResetBegan,
        Kind::ResetStepped,
        Kind::ResetWithdrawn,
        Kind::ResetEnded,
        Kind::PointerMoved,
        Kind::PromptsSetAside,
    ] {
        let times = seen.get(kind.name()).copied().unwrap_or(0);
        assert!(times > 50, "{} came {times} times only", kind.name());
    }
}
