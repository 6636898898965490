//! The agent's process: the driver that carries out what `agentd-core` decides.
//!
//! It may **not** open the store: the program that uses it passes in a journal.
//!
//! - [`driver`]: carries out the effects of core's turn machine.
//! - [`files_worker`]: reads and writes files for the daemon, in the sandbox of the tools, in its own process.
//! - [`gate`]: the proxy of a sandbox whose network is a list of hosts, in its own process.
//! - [`instructions`]: the instruction files of the user and the project.
//! - [`link`]: a journal that the daemon keeps.
//! - [`mcp`]: the MCP servers of the agent.
//! - [`outer`]: the program of an agent that runs its turns by itself.
//! - `program_inside`: this program, for a process of its own in a sandbox.
//! - [`provider`]: one request to a model, streamed.
//! - `tls`: certificate authorities, read when the first server presents its certificate.
//! - [`tools`]: the tools of the agent.
//! - `worker`: a process that asks one program or server for the daemon.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod driver;
pub mod files_worker;
pub mod gate;
mod held_dir;
pub mod instructions;
pub mod link;
pub mod mcp;
pub mod outer;
mod program_inside;
pub mod provider;
mod tls;
pub mod tools;
mod worker;
