//! Tests of `agentd acp` with the real daemon and the strict fake model: an editor that speaks raw JSON lines, and the
//! reference SDK of the protocol. And of agents of others that speak the protocol, under agentd.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says what it did, and panics where it cannot go on"
)]

mod editor;
mod peers;
mod permissions;
mod prompts;
mod sdk;
mod servers;
mod sessions;
#[allow(dead_code, reason = "the tests of the daemon use all of it")]
#[path = "../daemon/test_daemon.rs"]
mod test_daemon;
