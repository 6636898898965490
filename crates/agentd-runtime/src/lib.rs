//! The agent's process: the driver that carries out what `agentd-core` decides.
//!
//! It may **not** open the store: it sees a journal through whoever starts it.
//!
//! - [`provider`]: one request to a model, streamed.

pub mod provider;
