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
mod auto_reset;
mod compact;
mod crash;
mod disk;
mod exactly_once;
mod fork;
mod house;
mod keys;
mod lab;
mod phases;
mod processes;
mod purge;
mod reset;
mod reset_keeps;
mod rewind;
mod subagent_kills;
mod subagents;
mod tasks;
mod titles;
