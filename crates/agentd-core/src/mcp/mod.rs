//! MCP servers, as far as no IO is needed: their resolved settings, the names of their tools, and what is known about
//! their lists.
//!
//! - [`Server`]: the settings of one server with all references replaced. The native runtime starts servers from them, and
//!   a runtime that is a program of its own can pass them on.
//! - [`mod@file`]: a project's `.mcp.json`.
//! - [`tool_names`]: what the tools of a server are called in requests, rules and hooks.
//! - [`work`]: what a user asks a server, in a process of its own.
//! - [`Question`]: what a server asks the user during a call.
//! - [`CallProgress`]: how far a server is with a call.
//! - [`Seen`]: what a runtime found out about a server.

pub mod file;
mod name;
mod progress;
mod reference;
mod seen;
mod server;
pub mod work;

#[cfg(test)]
mod tests;

pub use crate::question::{Field, Question, QuestionReply};
pub use crate::spec::MCP_PREFIX as PREFIX;
pub use name::{server_of, tool_names};
pub use progress::CallProgress;
pub use seen::{MOST_TOOLS, Offer, PATIENCE_S, Seen, Trouble};
pub use server::{
    DEFAULT_TIMEOUT_MS, Known, Server, Source, Transport, check_lent, lent_digest, references,
    resolve, secrets, withheld,
};
