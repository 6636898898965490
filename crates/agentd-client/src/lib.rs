//! The daemon's API: its types ([`api`]), and the typed client that the command line, the tests and other programs use
//! ([`Client`]).
//!
//! It may **not** contain logic: the daemon decides about every request.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod api;
mod client;
mod error;
mod events;
mod retry;

pub use client::{Client, Failpoints, Lease};
pub use error::{Error, Kind, Problem};
pub use events::Events;
pub use retry::{Retry, Unanswered};
