//! Every verb of the command line, end to end: the real program, the daemon that it starts, and the built-in demo model.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in what it calls too"
)]

mod api_bodies;
mod apply;
mod approve;
mod attach;
mod checkpoint;
mod compact;
mod completions;
mod config;
mod context;
mod r#continue;
mod conversations;
mod create;
mod daemon;
mod deny;
mod edit;
mod exit_codes;
mod export;
mod files;
mod fork;
mod hooks;
mod ids;
mod import;
mod init;
mod interrupt;
mod json;
mod list;
mod logs;
mod models;
mod names;
mod prune;
mod purge;
mod queue;
mod raw;
mod rename;
mod replay;
mod reset;
mod restart;
mod restore;
mod rewind;
mod rm;
mod run;
mod schedule;
mod search;
mod send;
mod set;
mod show;
mod start;
mod status;
mod stop;
mod tasks;
mod test_cli;
mod usage;
mod wait;
