//! The pure part: what an agent's journal means, and what to do next.
//!
//! Everything here is a function of its arguments. This crate may **not** use a clock, a file, a socket, a process,
//! randomness or an async runtime. Time and ids come in as values, and what to do is returned as values
//! ([`turn::Effect`]).
//!
//! - [`event`]: the closed, versioned list of what can happen.
//! - [`state`] and [`window`]: the two folds.
//! - [`request`]: a window becomes the next model request; [`repair`] makes any history valid.
//! - [`begin`]: create, reset, rewind, fork, undo and redo.
//! - [`files`]: what an agent changed in files, and what a restore writes.
//! - [`schedule`]: when schedules are due, and what a firing appends.
//! - [`recover`]: what to append after a crash.
//! - [`turn`]: the machine that decides the next effect.
//! - [`outer`]: programs that run turns by themselves: what they are given, and what their output means.
//! - [`outbox`]: what is sent outside about an agent: notifications, and the answers of bindings.
//! - [`subagents`]: which subagents an agent may start, their settings and budgets, and how their end is reported.
//! - [`session`]: a conversation in one portable file; [`frame`]: prompts as programs send them.
//! - [`link`]: the protocol between an agent's process and the daemon.
//! - [`mcp`]: the servers whose tools an agent has: their settings, the names of their tools, their lists.
//! - [`secrets`]: removes an agent's secrets from text.
//! - [`permission`]: whether a tool call may run; [`needs`]: what a call needs beyond its sandbox.
//! - [`foreign_rule`], [`foreign_settings`] and [`foreign_agent`]: rules, settings and subagents as Claude Code writes them.
//! - [`patch`] and [`shell_words`]: patches, and commands as lists of words, as some models write them.
//! - [`search`]: a user's search, and the part of a text that shows what it found.
//! - [`lexical_path`]: paths by their text; [`instruction_text`]: what instruction files import, and when rules apply.
//! - [`hosts`]: which hosts tools may reach.
//! - [`hook`]: what users' hooks receive, and what they may decide.
//! - [`transcript`]: a conversation as hooks read it.
//! - [`catalog`]: the known providers and models, and the user's own.
//! - [`attachment`]: files of a prompt: their types, limits and sizes.
//! - [`import_history`]: histories of other programs as journals.
//! - [`wire`]: a request in each provider's format.

pub mod admission;
pub mod approval;
pub mod attachment;
pub mod begin;
pub mod branch_point;
pub mod budget;
pub mod canonical;
pub mod catalog;
pub mod compaction;
pub mod digest;
pub mod draft;
pub mod environment;
pub mod event;
pub mod files;
mod finished;
pub mod foreign_agent;
pub mod foreign_rule;
pub mod foreign_settings;
pub mod frame;
pub mod hook;
mod hook_inputs;
pub mod hosts;
pub mod id;
pub mod import_history;
pub mod instruction_text;
pub mod lexical_path;
pub mod link;
pub mod mcp;
pub mod message;
pub mod needs;
pub mod outbox;
pub mod outer;
pub mod patch;
pub mod permission;
pub mod plain;
pub mod private_home;
pub mod question;
pub mod recover;
mod refused;
pub mod release;
pub mod repair;
pub mod request;
pub mod reset;
pub mod runnable;
pub mod schedule;
pub mod search;
pub mod secrets;
pub mod session;
pub mod shell_words;
pub mod skill;
pub mod spec;
pub mod state;
pub mod subagents;
pub mod supervise;
pub mod system_prompt;
pub mod time;
pub mod title;
pub mod tool_names;
pub mod transcript;
pub mod turn;
pub mod usage;
pub mod window;
pub mod wire;

#[cfg(test)]
mod fixture;
