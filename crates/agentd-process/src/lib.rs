//! Processes: started, recognised, signalled and reaped by who they are, never by a bare pid.
//!
//! The only room that starts or signals processes. It may **not** know what an agent is.
//!
//! - [`Identity`]: a pid together with its start time.
//! - [`Start`]: a program to run in a process group of its own; [`Child`]: one that was started here.
//! - [`signal()`] and [`signal_group`]: to that very process or its group, or to nobody.

mod child;
mod error;
mod identity;
mod signal;
mod start;
mod stat;

pub use child::{Child, Exit};
pub use error::{Error, Result};
pub use identity::Identity;
pub use signal::{Delivery, Signal, signal, signal_group};
pub use start::Start;

#[cfg(test)]
mod tests;
