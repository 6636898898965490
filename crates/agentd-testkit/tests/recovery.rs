//! After a crash at any point, recovery writes down what became of everything, and repair finds
//! nothing to do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by panicking"
)]

use agentd_core::event::{After, Body, Kind, MessageStatus, TurnStatus};
use agentd_core::id::AgentId;
use agentd_core::recover::{Recovery, recover};
use agentd_core::request::answer;
use agentd_core::state::AgentState;
use agentd_core::time::Timestamp;
use agentd_core::window::Window;
use agentd_testkit::journal::ops::{FactOp, Op, PrepareOp, ReplyOp, op, ops, reply};
use agentd_testkit::journal::{Journals, driver::JournalDriver};
use agentd_testkit::theorem::{Seen, check_prefixes};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

/// The journal's first `len` events, with all there is of the other agents.
fn cut(journals: &Journals, agent: AgentId, len: usize) -> Journals {
    let mut journals = journals.clone();
    if let Some(events) = journals.agents.get_mut(&agent) {
        events.truncate(len);
    }
    journals
}

fn fold(journals: &Journals, agent: AgentId) -> Option<(AgentState, Window)> {
    let state = journals.state(agent, usize::MAX);
    let current = state.tree.current()?;
    let window = journals.window(agent, &state, current, state.head);
    Some((state, window))
}

fn append(journals: &mut Journals, agent: AgentId, recovery: &Recovery) {
    let events = journals.agents.entry(agent).or_default();
    for event in &recovery.events {
        let seq = agentd_core::id::Seq(events.len() as u64 + 1);
        events.push(event.clone().placed(agent, seq));
    }
}

/// Crashes after every event of every journal.
#[test]
fn after_recovery_repair_is_the_identity() {
    let facts = prop::collection::vec(
        prop::sample::select(vec![
            FactOp::Ended,
            FactOp::NotStarted,
            FactOp::Unknown,
            FactOp::NotListed,
        ]),
        0..4,
    );
    TestRunner::new(agentd_testkit::cases(4_000))
        .run(&(ops(30), reply(), facts), |(ops, partial, facts)| {
            let mut driver = JournalDriver::run(&ops);
            let agent = driver.agent;
            for len in 1..=driver.journals.of(agent).len() {
                let mut journals = cut(&driver.journals, agent, len);
                let Some((state, window)) = fold(&journals, agent) else {
                    continue;
                };
                let facts = driver.facts(&state, After::Crash, &partial, &facts);
                let at = Timestamp::from_millis(0);
                let recovery = recover(&state, &window, &facts, at);
                prop_assert!(recovery.running.is_empty());
                append(&mut journals, agent, &recovery);
                check_recovered(&journals, agent, &facts)?;
            }
            Ok(())
        })
        .unwrap();
}

fn check_recovered(
    journals: &Journals,
    agent: AgentId,
    facts: &agentd_core::recover::Facts,
) -> Result<(), TestCaseError> {
    let Some((state, window)) = fold(journals, agent) else {
        return Ok(());
    };
    prop_assert_eq!(state.anomalies, 0);
    let in_flight = state.turn.as_ref().and_then(|turn| turn.in_flight);
    prop_assert_eq!(in_flight, None, "a request is still out");
    // A call that waits for the user is left to wait; all others have their results.
    let waiting = |call: &agentd_core::message::ToolCall| {
        let turn = state.turn.as_ref().map(|turn| turn.id);
        turn.is_some_and(|turn| state.approvals.of_call(turn, &call.id).is_some())
    };
    prop_assert!(window.open_calls().all(waiting), "a call has no result");
    if window.open_calls().next().is_none() {
        for wire in agentd_core::message::Wire::ALL {
            let context = agentd_testkit::journal::context(wire);
            let repairs = answer(&window, &context).map(|request| request.repairs);
            prop_assert!(
                repairs.as_ref().is_none_or(Vec::is_empty),
                "{:?} after recovery",
                repairs
            );
        }
    }
    // Recovering again changes nothing but the count of processes.
    let mut facts = facts.clone();
    facts.incarnation = facts.incarnation.next();
    facts.after = After::Restart;
    let again = recover(&state, &window, &facts, Timestamp::from_millis(0));
    let kinds: Vec<Kind> = again.events.iter().map(|event| event.body.kind()).collect();
    prop_assert_eq!(kinds, vec![Kind::IncarnationBegan]);
    Ok(())
}

/// The machine never sends anything that needed a repair, whatever happened before.
#[test]
fn nothing_the_machine_sends_needs_a_repair() {
    TestRunner::new(agentd_testkit::cases(4_000))
        .run(&ops(40), |ops| {
            let driver = JournalDriver::run(&ops);
            for sent in &driver.sent {
                prop_assert!(
                    sent.request.repairs.is_empty(),
                    "{:?} at event {}",
                    sent.request.repairs,
                    sent.at
                );
            }
            Ok(())
        })
        .unwrap();
}

/// goose#12133, codex#12382: an unfinished turn goes on by itself and ends.
#[test]
fn every_turn_ends_once_the_world_calms_down() {
    TestRunner::new(agentd_testkit::cases(4_000))
        .run(&ops(40), |ops| {
            let mut driver = JournalDriver::run(&ops);
            driver.run_until_idle();
            let agent = driver.machine().agent();
            prop_assert!(agent.turn.is_none(), "{:?}", agent.turn);
            prop_assert_eq!(agent.inbox.waiting().len(), 0);
            prop_assert_eq!(agent.anomalies, 0);
            one_end_for_each_turn(&driver.journals)
        })
        .unwrap();
}

fn one_end_for_each_turn(journals: &Journals) -> Result<(), TestCaseError> {
    for (agent, events) in &journals.agents {
        let mut open = None;
        for event in events {
            match &event.body {
                Body::TurnStarted(_) => {
                    prop_assert_eq!(open, None, "a turn in a turn");
                    open = event.turn;
                }
                Body::TurnEnded(_) => {
                    prop_assert_eq!(open, event.turn, "the end of another turn");
                    open = None;
                }
                _ => {}
            }
        }
        let state = journals.state(*agent, usize::MAX);
        prop_assert_eq!(open, state.turn.map(|turn| turn.id));
    }
    Ok(())
}

/// The number of results of a call is one, however often the process died. goose#11808,
/// langgraph#7417, langgraph#7213.
#[test]
fn each_call_is_started_at_most_once_and_has_one_result() {
    TestRunner::new(agentd_testkit::cases(4_000))
        .run(&ops(40), |ops| {
            let mut driver = JournalDriver::run(&ops);
            driver.run_until_idle();
            for (agent, events) in &driver.journals.agents {
                let mut started = std::collections::BTreeMap::new();
                let mut results = std::collections::BTreeMap::new();
                for event in events {
                    match &event.body {
                        Body::ToolStarted(body) => {
                            *started.entry((event.turn, body.call.clone())).or_insert(0) += 1;
                        }
                        Body::ToolEnded(body) => {
                            *results.entry((event.turn, body.call.clone())).or_insert(0) += 1;
                        }
                        _ => {}
                    }
                }
                prop_assert!(started.values().all(|n| *n == 1), "{:?}", started);
                prop_assert!(results.values().all(|n| *n == 1), "{:?}", results);
                // An agent that the driver forked away from is left in the middle of what it did.
                let all = started.keys().all(|call| results.contains_key(call));
                prop_assert!(all || *agent != driver.agent);
            }
            Ok(())
        })
        .unwrap();
}

/// goose#7827, #7785, #11909: three tools, killed in the third; the first two results stay.
#[test]
fn a_crash_in_the_third_of_three_tools_keeps_the_first_two() {
    let mut driver = JournalDriver::new();
    let three = ReplyOp {
        calls: vec!["x", "y", "z"],
        ..ReplyOp::default()
    };
    driver.apply(&prompt());
    driver.apply(&Op::Reply(three));
    for _ in 0..3 {
        driver.apply(&Op::Prepare(PrepareOp::Run));
    }
    driver.apply(&finish());
    driver.apply(&finish());
    driver.apply(&Op::Crash {
        partial: ReplyOp::default(),
        facts: vec![FactOp::Unknown],
    });
    let outcomes: Vec<_> = driver
        .journals
        .of(driver.agent)
        .iter()
        .filter_map(|event| match &event.body {
            Body::ResultAdded(result) => Some(result.outcome),
            _ => None,
        })
        .collect();
    use agentd_core::message::CallOutcome::{Ok, Unknown};
    assert_eq!(outcomes, [Ok, Ok, Unknown]);
    assert!(driver.sent.last().unwrap().request.repairs.is_empty());
}

/// A turn whose process dies each time is given up after three tries in all.
#[test]
fn a_turn_that_crashes_each_time_is_lost_after_three_tries() {
    let mut driver = JournalDriver::new();
    driver.apply(&prompt());
    for _ in 0..5 {
        driver.apply(&Op::Crash {
            partial: ReplyOp::default(),
            facts: vec![],
        });
    }
    assert_eq!(driver.sent.len(), 3, "no fourth request");
    let last = driver.machine().agent().last_turn.clone().unwrap();
    assert_eq!(last.status, TurnStatus::Lost);
}

/// claude-code#24025, codex#29058, codex#2759: the text that was cut off is in the history, marked,
/// and the model sees it, and is told once.
#[test]
fn what_was_cut_off_is_kept_marked_and_told_once() {
    let mut driver = JournalDriver::new();
    driver.apply(&prompt());
    let partial = ReplyOp {
        texts: 1,
        ..ReplyOp::default()
    };
    let facts = vec![];
    driver.apply(&Op::Crash { partial, facts });
    let events = driver.journals.of(driver.agent);
    let cut: Vec<_> = events
        .iter()
        .filter(|event| {
            matches!(&event.body, Body::MessageAdded(m) if m.status == MessageStatus::Interrupted)
        })
        .collect();
    assert_eq!(cut.len(), 1);
    let words = cut[0].body.words();
    let sent = &driver.sent.last().unwrap().request;
    let body = agentd_core::wire::encode(sent).to_string();
    assert!(words.iter().all(|word| body.contains(word.as_str())));
    let notices = events.iter().filter(|e| e.kind() == Kind::Notice).count();
    assert_eq!(notices, 1);
    let mut seen = Seen::default();
    check_prefixes(&driver.journals, driver.agent, &mut seen).unwrap();
}

/// goose#11996: after an interrupt the next prompt is answered, not the old task resumed.
#[test]
fn after_an_interrupt_the_next_prompt_is_answered() {
    TestRunner::new(agentd_testkit::cases(1_000))
        .run(&prop::collection::vec(op(), 0..20), |ops| {
            let mut driver = JournalDriver::run(&ops);
            driver.run_until_idle();
            driver.apply(&prompt());
            let asked = driver.sent.len();
            driver.apply(&Op::Interrupt);
            prop_assert!(driver.machine().agent().turn.is_none(), "the turn is over");
            prop_assert_eq!(driver.sent.len(), asked, "nothing new was started");
            driver.apply(&prompt());
            prop_assert_eq!(driver.sent.len(), asked + 1);
            let request = &driver.sent.last().unwrap().request;
            let last = request.messages.last().unwrap();
            let first = last.blocks.first();
            let is_prompt = matches!(first, Some(agentd_core::message::Block::Text { .. }));
            prop_assert!(is_prompt, "the new prompt is the last word");
            Ok(())
        })
        .unwrap();
}

fn prompt() -> Op {
    Op::Prompt {
        mode: agentd_core::event::PromptMode::Queue,
        image: false,
    }
}

fn finish() -> Op {
    Op::Finish {
        which: 0,
        outcome: agentd_core::message::CallOutcome::Ok,
        empty: false,
    }
}

/// goose#9037, goose#9042, claude-code#65360: a queued prompt outlives an interrupt, and is answered.
#[test]
fn a_queued_prompt_survives_an_interrupt() {
    let mut driver = JournalDriver::new();
    driver.apply(&prompt());
    driver.apply(&prompt());
    assert_eq!(driver.machine().agent().inbox.waiting().len(), 1);
    driver.apply(&Op::Interrupt);
    let last = driver.machine().agent().last_turn.clone().unwrap();
    assert_eq!(last.status, TurnStatus::Interrupted);
    assert_eq!(
        driver.sent.len(),
        2,
        "the queued prompt has its own turn now"
    );
    driver.run_until_idle();
    let last = driver.machine().agent().last_turn.clone().unwrap();
    assert_eq!(last.status, TurnStatus::Completed);
}

/// claude-code#24025, codex#29058: a question that waits is still there after a crash, and the answer
/// counts.
#[test]
fn a_pending_approval_survives_crashes_and_is_answered_once() {
    let mut driver = JournalDriver::new();
    driver.apply(&prompt());
    driver.apply(&Op::Reply(ReplyOp {
        calls: vec!["x"],
        ..ReplyOp::default()
    }));
    driver.apply(&Op::Prepare(PrepareOp::Ask));
    let waiting = |driver: &JournalDriver| driver.machine().agent().approvals.waiting().count();
    assert_eq!(waiting(&driver), 1);
    for _ in 0..4 {
        driver.apply(&Op::Crash {
            partial: ReplyOp::default(),
            facts: vec![],
        });
        assert_eq!(waiting(&driver), 1, "waiting for the user is no failed try");
    }
    driver.apply(&Op::Approve { allow: true });
    assert_eq!(waiting(&driver), 0);
    driver.run_until_idle();
    let events = driver.journals.of(driver.agent).iter();
    let started = events.filter(|e| e.kind() == Kind::ToolStarted).count();
    assert_eq!(started, 1);
    assert!(driver.machine().agent().turn.is_none());
}
