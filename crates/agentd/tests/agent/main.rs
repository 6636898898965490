//! `agentd agent` as another program runs it: killed in every phase, interrupted in every phase, limited, resumed. The
//! strict fake model checks every request.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what it did, and panics where it cannot go on"
)]

mod budget;
mod frames;
mod interrupt;
mod judge;
mod kept_files;
mod kill;
mod leak;
mod process;
mod session;
mod start;
mod terminate;
mod test_agent;
