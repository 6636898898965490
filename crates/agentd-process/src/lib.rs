//! Processes: started, recognised, signalled and reaped by who they are, never by a bare pid.
//!
//! The only room that starts or signals processes. It may **not** know what an agent is.
//!
//! - [`Identity`]: a pid together with its start time.
//! - [`Start`]: a program to run, in a group or a session of its [`Ownership`]; [`Child`]: one that was
//!   started here.
//! - [`signal()`] and [`signal_group`]: to that very process or its group, or to nobody.
//! - [`kill_tree`]: the end of a process and of all that it started, up to the next shim;
//!   [`kill_descendants`]: of all that this one started, shims too; [`kill_orphans`]: of whoever came
//!   to this process because its parents had left it.
//! - [`failpoint`]: places where the lab can hold a process still, or end it.
//! - [`task`]: a process tree that outlives whoever had it started; [`shim`]: what looks after it.

mod boot;
mod cgroup;
mod child;
mod children;
mod error;
pub mod failpoint;
mod identity;
mod inside;
mod peer;
mod reap;
pub mod shim;
mod signal;
mod snapshot;
mod start;
mod stat;
pub mod task;
mod tree;

pub use boot::{boot_id, machine_id};
pub use cgroup::remove_stale_cgroups;
pub use child::{Child, Exit};
pub use error::{Error, Result};
pub use identity::Identity;
pub use inside::{Around, is_in_task, task_around};
pub use peer::Peer;
pub use reap::{adopt_orphans, kill_orphans, reap_orphans};
pub use signal::{Delivery, Signal, signal, signal_group};
pub use start::{Ownership, Start};
pub use task::ended;
pub use tree::{descendants, kill_descendants, kill_tree};

#[cfg(test)]
mod tests;
