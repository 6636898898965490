//! The pure room: what an agent's journal means, and what should happen next.
//!
//! Everything here is a function of its arguments. This crate may **not** touch a clock, a file, a
//! socket, a process, randomness or an async runtime; time and ids come in as values, and what
//! should be done goes out as values ([`turn::Effect`]).
//!
//! - [`event`]: the closed, versioned list of what can happen.
//! - [`state`] and [`window`]: the two folds.
//! - [`request`]: a window becomes the next model request; [`repair`] makes any history valid.
//! - [`begin`]: conversations begin, end and come back: create, reset, rewind, fork, undo.
//! - [`recover`]: what to append after a crash.
//! - [`turn`]: the machine that decides the next effect.
//! - [`subagents`]: subagents: who may start them, with what, and what is told of their end.
//! - [`session`]: a conversation in one portable file; [`frame`]: prompts as programs hand them over.
//! - [`link`]: what an agent's process and the daemon say to each other.
//! - [`secrets`]: an agent's secrets, taken out of text.
//! - [`permission`]: whether a tool call may run.
//! - [`hosts`]: which hosts tools may reach.
//! - [`hook`]: what users' programs are told, and what they may decide.
//! - [`catalog`]: the providers and models that are known, and the user's own.
//! - [`wire`]: a request in the words of each provider.

pub mod approval;
pub mod begin;
pub mod branch_point;
pub mod budget;
pub mod catalog;
pub mod compaction;
pub mod draft;
pub mod environment;
pub mod event;
pub mod frame;
pub mod hook;
pub mod hosts;
pub mod id;
pub mod link;
pub mod message;
mod op;
pub mod permission;
pub mod plain;
pub mod recover;
pub mod release;
pub mod repair;
pub mod request;
pub mod reset;
pub mod secrets;
pub mod session;
pub mod spec;
pub mod state;
pub mod subagents;
pub mod time;
pub mod title;
pub mod turn;
pub mod usage;
pub mod window;
pub mod wire;

#[cfg(test)]
mod fixture;
