//! The daemon's API: its words ([`api`]), and the typed client that the command line, the tests and
//! others use ([`Client`]).
//!
//! It may **not** hold logic: what is asked for is decided in the daemon.

pub mod api;
mod client;
mod error;
mod events;
mod retry;

pub use client::{Client, Failpoints};
pub use error::{Error, Kind, Problem};
pub use events::Events;
pub use retry::{Retry, Unanswered};
