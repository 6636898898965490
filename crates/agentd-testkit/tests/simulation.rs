//! Daemon, link, runtime and journal under random schedules: what was acknowledged happens once.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it tried"
)]

use agentd_core::event::{Body, TurnStatus};
use agentd_testkit::sim::{Sim, op};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use std::collections::BTreeMap;

/// goose#11808, langgraph#7417: a tool that had run is run again after a crash.
/// goose#9037: a queued prompt is lost.
#[test]
fn whatever_is_killed_or_cut_each_prompt_is_taken_once_and_each_tool_runs_once() {
    let kills = Cell::new(0_u64);
    let ended = std::cell::RefCell::new(BTreeMap::<String, u64>::new());
    TestRunner::new(agentd_testkit::cases(10_000))
        .run(&prop::collection::vec(op(), 1..120), |ops| {
            let mut sim = Sim::new();
            for op in &ops {
                sim.apply(*op);
                sim.check_prefix();
            }
            sim.settle();
            check(&sim)?;
            kills.set(kills.get() + u64::from(sim.kills));
            for event in sim.events() {
                if let Body::TurnEnded(turn) = &event.body {
                    let status = format!("{:?}", turn.status);
                    *ended.borrow_mut().entry(status).or_default() += 1;
                }
            }
            Ok(())
        })
        .unwrap();
    println!(
        "runtimes killed: {}; turns ended: {:?}",
        kills.get(),
        ended.borrow()
    );
    assert!(kills.get() > 1000, "hardly anything was killed");
}

fn check(sim: &Sim) -> Result<(), TestCaseError> {
    let state = sim.kept.state();
    prop_assert_eq!(state.anomalies, 0);
    prop_assert!(state.turn.is_none(), "a turn never ended");
    prop_assert_eq!(state.inbox.waiting().len(), 0, "a prompt was never taken");
    for (call, times) in &sim.effects {
        prop_assert_eq!(*times, 1, "{} ran more than once", call);
    }
    let mut queued = BTreeMap::<String, u32>::new();
    let mut taken = BTreeMap::new();
    let (mut started, mut ended) = (0, 0);
    for event in sim.events() {
        match &event.body {
            Body::PromptQueued(prompt) => {
                *queued
                    .entry(prompt.key.clone().unwrap_or_default())
                    .or_default() += 1;
            }
            Body::PromptsTaken(body) => {
                for prompt in &body.prompts {
                    *taken.entry(*prompt).or_insert(0) += 1;
                }
            }
            Body::TurnStarted(_) => started += 1,
            Body::TurnEnded(turn) => {
                ended += 1;
                let gave_up = turn.status == TurnStatus::Lost;
                prop_assert!(
                    !gave_up || sim.kills >= 3,
                    "given up after {} kills",
                    sim.kills
                );
            }
            _ => {}
        }
    }
    prop_assert_eq!(started, ended);
    for sent in &sim.prompts {
        prop_assert!(sent.is_acknowledged);
        prop_assert_eq!(
            queued.get(&sent.key),
            Some(&1),
            "{} is not there once",
            sent.key
        );
    }
    prop_assert_eq!(taken.len(), sim.prompts.len());
    prop_assert!(
        taken.values().all(|times| *times == 1),
        "a prompt was taken twice"
    );
    Ok(())
}
