//! `agentd acp`: an editor speaks the Agent Client Protocol to it over stdin and stdout, and it speaks to the daemon through
//! the API like every other command.
//!
//! A session of the protocol is a conversation. `connection` knows the connection types of the protocol crate; `conversation_ref`,
//! `translate`, `content`, `options` and `stop` are pure; `serve` routes requests, `servers` are those that the editor lends, `open` finds, creates and forks
//! conversations, and `session` follows the events of one.

mod catalog;
mod commands;
mod connection;
mod content;
mod conversation_ref;
mod history;
mod open;
mod options;
mod problem;
mod serve;
mod servers;
mod session;
mod stdio;
mod stop;
mod translate;

pub use serve::run;
