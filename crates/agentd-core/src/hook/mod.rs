//! The hook contract: users' programs hear of what happens to an agent, and some may decide about it.
//!
//! - [`HookEvent`]: what they hear of, and what they may do about it.
//! - [`Config`]: a hooks file; [`Layer`]: where it comes from; [`chosen`]: which handlers run.
//! - [`HookInput`]: what happened, and the JSON that a handler reads.
//! - [`Answer`]: what one handler says by its exit status and output; [`Verdict`]: what all of them say.
//! - [`HookInvocation`]: the question of whoever wants to know, under an id that follows from what it is about.

mod answer;
mod config;
mod event;
mod hook_input;
mod invocation;
mod layers;
mod matcher;
mod verdict;

pub use answer::{Answer, CONTEXT_CHARACTERS, Decision, Ended, capped, read, read_http};
pub use config::{Config, Group, Handler, OnFailure, Problem, Run, Severity};
pub use event::HookEvent;
pub use hook_input::{HookInput, Setting};
pub(crate) use invocation::uuid_of;
pub use invocation::{HookInvocation, digest};
pub use layers::{Chosen, Layer, chosen};
pub use matcher::{Matcher, tool_names};
pub use verdict::Verdict;

#[cfg(test)]
mod tests;
