//! The daemon with everything real but the model: killed, replaced, and asked for everything that it can do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says what it did, and panics where it cannot go on"
)]

mod adoption;
mod crash;
mod disk;
mod exactly_once;
mod house;
mod keys;
mod phases;
mod processes;
mod purge;
mod reset;
mod reset_keeps;
mod subagents;
mod tasks;
