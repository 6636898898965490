//! For every prefix of every journal there is nothing to send, or a request that all four providers
//! accept. goose#7684, goose#7914, claude-code#6836, opencode#10616, pi#4189, copilot-cli#3183: one
//! unanswered call made every later request a 400.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by panicking"
)]

use agentd_core::repair::Repair;
use agentd_testkit::journal::{adversarial, driver::JournalDriver, ops};
use agentd_testkit::theorem::{Seen, check_prefixes};
use proptest::test_runner::{TestCaseError, TestRunner};
use std::cell::RefCell;

fn runner() -> TestRunner {
    TestRunner::new(agentd_testkit::cases(6_000))
}

#[test]
fn holds_for_journals_that_our_machine_writes() {
    let seen = RefCell::new(Seen::default());
    runner()
        .run(&ops::ops(40), |ops| {
            let driver = JournalDriver::run(&ops);
            for agent in driver.journals.agents.keys() {
                check_prefixes(&driver.journals, *agent, &mut seen.borrow_mut())
                    .map_err(TestCaseError::fail)?;
            }
            Ok(())
        })
        .unwrap();
    let seen = seen.into_inner();
    println!("{seen:?}");
    assert!(seen.requests > 100_000, "too little was tried: {seen:?}");
}

#[test]
fn holds_for_journals_that_nobody_should_write() {
    let seen = RefCell::new(Seen::default());
    runner()
        .run(&adversarial::events(32), |wild| {
            let (agent, journals) = adversarial::journal(&wild);
            check_prefixes(&journals, agent, &mut seen.borrow_mut()).map_err(TestCaseError::fail)
        })
        .unwrap();
    let seen = seen.into_inner();
    println!("{seen:?}");
    for name in Repair::NAMES {
        let hits = seen.repairs.get(name).copied().unwrap_or(0);
        assert!(hits >= 100, "{name} was made {hits} times only");
    }
}
