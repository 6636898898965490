//! Tests of the turn machine: lists of inputs and of the expected effects. One file per transition; `harness` drives,
//! `words` names.

mod approval;
mod budget;
mod commands;
mod compact_asked;
mod compaction;
mod environment;
mod files;
mod harness;
mod hooks;
mod instructions;
mod interrupt;
mod interrupt_race;
mod mcp;
mod outer;
mod output;
mod prompt;
mod questions;
mod reload;
mod reset;
mod restart;
mod resume;
mod retry;
mod steer;
mod stop;
mod tasks;
mod time_limit;
mod tools;
mod words;
