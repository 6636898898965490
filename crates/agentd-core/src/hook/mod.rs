//! The hook contract: users' programs that run when an event happens to an agent, and that may decide about some
//! events.
//!
//! - [`HookEvent`]: the events, and what a hook may decide about each.
//! - [`Config`]: a hooks file; [`Layer`]: where it comes from; [`chosen`]: which handlers run.
//! - [`HookInput`]: what happened, and the JSON that a handler reads.
//! - [`Answer`]: the answer of one handler, from its exit status and output; [`Verdict`]: all answers combined.
//! - [`HookInvocation`]: one invocation, with an id that is derived from its subject.

mod answer;
mod condition;
mod config;
mod event;
mod hook_input;
mod invocation;
mod layers;
mod matcher;
mod patched;
mod verdict;

pub use crate::digest::digest;
pub use answer::{
    Answer, CONTEXT_CHARACTERS, Decision, Ended, capped, could_not_run, read, read_http,
};
pub use config::{Config, Group, Handler, OnFailure, Problem, Run, Severity};
pub use event::HookEvent;
pub use hook_input::{HookInput, Setting, ToldCall};
pub use invocation::HookInvocation;
pub use layers::{Chosen, Layer, chosen};
pub use matcher::Matcher;
pub use verdict::{HookOutcome, Verdict};

#[cfg(test)]
mod tests;
