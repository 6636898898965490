//! Attacks and daily work in real sandboxes, as root and as an ordinary user.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "functions that tests share"
)]

mod caches;
mod calls;
mod everything;
mod files;
mod git;
mod life;
mod list;
mod modes;
mod network;
mod passed;
mod passed_dirs;
mod planted;
mod policy;
mod processes;
mod programs;
mod repositories;
mod root;
mod sequences;
mod support;
mod testbed;
mod thread;
