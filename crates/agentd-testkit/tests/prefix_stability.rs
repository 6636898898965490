//! A later request begins with the messages of an earlier one, byte for byte, so that the provider's
//! cache survives turns and restarts. claude-code#42338, claude-code#93490: a resume changed the
//! request, and 400–500k tokens were written again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by panicking"
)]

use agentd_core::event::{Body, Event, Purpose};
use agentd_core::id::Seq;
use agentd_core::message::Wire;
use agentd_core::window::{Entry, Item};
use agentd_core::wire;
use agentd_testkit::journal::driver::{JournalDriver, Sent};
use agentd_testkit::journal::ops::{Op, ops};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use serde_json::Value;
use std::cell::Cell;

/// The messages of a request as they are sent, without the marks for the cache.
fn messages(sent: &Sent) -> Vec<String> {
    let body = wire::encode(&sent.request);
    let mut messages = wire::messages(sent.request.context.wire, &body)
        .cloned()
        .unwrap_or_default();
    for message in &mut messages {
        strip_marks(message);
    }
    messages.iter().map(Value::to_string).collect()
}

fn strip_marks(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| key != "cache_control");
            map.values_mut().for_each(strip_marks);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_marks),
        _ => {}
    }
}

/// What may change a request between two points: compaction, recovery, branches, another context.
fn may_change(event: &Event) -> bool {
    matches!(
        event.body,
        Body::Summary(_)
            | Body::IncarnationBegan(_)
            | Body::ConversationBegan(_)
            | Body::PointerMoved(_)
            | Body::Context(_)
    )
}

fn check(driver: &JournalDriver, compared: &Cell<u64>) -> Result<(), TestCaseError> {
    let answers = driver.sent.iter();
    let answers: Vec<&Sent> = answers
        .filter(|sent| sent.request.purpose == Purpose::Answer)
        .collect();
    for (index, later) in answers.iter().enumerate() {
        for earlier in answers.iter().take(index) {
            let comparable = earlier.agent == later.agent
                && earlier.conversation == later.conversation
                && !driver.journals.of(later.agent)[earlier.at..later.at]
                    .iter()
                    .any(may_change);
            if comparable {
                compared.set(compared.get() + 1);
                let (earlier, later) = (messages(earlier), messages(later));
                prop_assert_eq!(&earlier[..], &later[..earlier.len().min(later.len())]);
            }
        }
    }
    Ok(())
}

#[test]
fn a_later_request_begins_with_the_earlier_one() {
    let compared = Cell::new(0);
    TestRunner::new(agentd_testkit::cases(12_000))
        .run(&ops(60), |ops| {
            // Without what is allowed to change a request there is more to compare.
            let calm: Vec<Op> = ops
                .into_iter()
                .filter(|op| !matches!(op, Op::Window(_) | Op::Switch(_) | Op::Restart { .. }))
                .collect();
            check(&JournalDriver::run(&calm), &compared)
        })
        .unwrap();
    assert!(compared.get() > 10_000, "only {} pairs", compared.get());
}

/// A restart at rest changes nothing at all: not one byte, and not the context either.
#[test]
fn a_restart_at_rest_leaves_the_request_as_it_was() {
    TestRunner::new(agentd_testkit::cases(1_000))
        .run(&ops(40), |ops| {
            let mut driver = JournalDriver::run(&ops);
            driver.run_until_idle();
            let (_, before) = driver.fold();
            driver.apply(&Op::Restart {
                partial: Default::default(),
            });
            let (_, after) = driver.fold();
            for wire in Wire::ALL {
                let context = agentd_testkit::journal::context(wire);
                let request = |window| agentd_core::request::answer(window, &context);
                let encode = |window| request(window).map(|r| wire::encode(&r).to_string());
                prop_assert_eq!(encode(&before), encode(&after));
            }
            Ok(())
        })
        .unwrap();
}

/// Undo on an idle agent: the next request is what it would have been without the reset.
#[test]
fn reset_and_undo_leave_the_next_request_as_it_would_have_been() {
    let compared = Cell::new(0_u64);
    TestRunner::new(agentd_testkit::cases(2_000))
        .run(&ops(40), |ops| {
            let mut driver = JournalDriver::run(&ops);
            driver.run_until_idle();
            let before = driver.fold();
            let old = before.0.tree.current();
            let current = before.0.tree.current_conversation();
            let has_messages = current.is_some_and(|current| current.has_messages());
            driver.apply(&Op::Reset { keep_queue: false });
            let (_, fresh) = driver.fold();
            // It is told of the tasks that go on, and of nothing else.
            let tasks = usize::from(before.0.tasks.running().len() > 0);
            let told = |item: &Item| matches!(item.entry, Entry::Notice(_));
            prop_assert!(
                fresh.items().len() == tasks && fresh.items().iter().all(told),
                "an old message in a new conversation"
            );
            // An undo passes over a conversation without any message.
            if !has_messages {
                return Ok(());
            }
            driver.apply(&Op::Undo);
            let after = driver.fold();
            prop_assert_eq!(after.0.tree.current(), old);
            prop_assert_eq!(before.1.items(), after.1.items());
            prop_assert_eq!(before.1.context(), after.1.context());
            compared.set(compared.get() + u64::from(!before.1.items().is_empty()));
            Ok(())
        })
        .unwrap();
    assert!(compared.get() > 500);
}

/// A window shows what its conversation had at that event, whatever came after it.
#[test]
fn later_events_never_change_an_earlier_window() {
    TestRunner::new(agentd_testkit::cases(500))
        .run(&ops(40), |ops| {
            let driver = JournalDriver::run(&ops);
            for (agent, events) in &driver.journals.agents {
                let state = driver.journals.state(*agent, events.len());
                for len in 1..=events.len() {
                    let then = driver.journals.state(*agent, len);
                    let Some(current) = then.tree.current() else {
                        continue;
                    };
                    let through = Seq(len as u64);
                    let now = driver.journals.window(*agent, &state, current, through);
                    let then = driver.journals.window(*agent, &then, current, through);
                    prop_assert_eq!(now, then);
                }
            }
            Ok(())
        })
        .unwrap();
}
