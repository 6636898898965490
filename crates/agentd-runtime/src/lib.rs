//! The agent's process: the driver that carries out what `agentd-core` decides.
//!
//! It may **not** open the store: it sees a journal through whoever starts it.
//!
//! - [`driver`]: carries out the effects of core's turn machine.
//! - [`gate`]: the way out of a sandbox whose network is a list of hosts, in a process of its own.
//! - [`link`]: a journal that the daemon keeps.
//! - [`provider`]: one request to a model, streamed.
//! - `tls`: certificate authorities, read when the first server presents its certificate.
//! - [`tools`]: what the agent can do.

pub mod driver;
pub mod gate;
pub mod link;
pub mod provider;
mod tls;
pub mod tools;
