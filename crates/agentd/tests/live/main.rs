//! The live view in a real pseudo-terminal: the program, the daemon that it starts, the fake model, and a model of the
//! screen.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, in what it calls too"
)]

mod chat;
mod chat_screens;
mod follow;
mod formats;
mod long_history;
mod mcp;
mod picture;
mod run;
mod send;
mod test_live;
