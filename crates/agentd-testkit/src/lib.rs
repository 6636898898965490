//! What the tests share. Never part of the product.
//!
//! - [`oracle`]: strict checkers of requests, written from the providers' documentation.
//! - [`predicate`]: what awaits an answer, determined from the events alone.
//! - [`journal`]: random journals: as the turn machine writes them, and as no program should.
//! - [`theorem`]: the prefix theorem as checks.
//! - [`model`]: a model server on loopback, as strict as the real ones.
//! - [`sim`]: daemon, link, runtime and journal, simulated, with every kind of loss.
//! - [`faulty_disk`]: a real disk that fails on request.
//! - [`harness`]: starts the real program, for the tests, the lab, the siege and the benches.
//! - [`histories`]: small histories of other programs.
//! - [`lab`]: the real program, killed at every failpoint.
//! - [`siege`]: the real program, attacked by its own model and by other users.

pub mod faulty_disk;
pub mod harness;
pub mod histories;
pub mod journal;
pub mod lab;
pub mod model;
pub mod oracle;
pub mod predicate;
pub mod siege;
pub mod sim;
pub mod theorem;

/// The factor by which a long run tries more.
pub const LONG: usize = 25;

/// How many cases a property test tries: [`LONG`] times as many with `AGENTD_TEST_LONG`.
pub fn cases(cases: u32) -> proptest::test_runner::Config {
    let long = std::env::var_os("AGENTD_TEST_LONG").is_some();
    proptest::test_runner::Config {
        cases: if long { cases * LONG as u32 } else { cases },
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..Default::default()
    }
}
