//! Processes: started, recognised, signalled and reaped by identity, never by a bare pid.
//!
//! The only crate that starts or signals processes. It may **not** know what an agent is.
//!
//! - [`Identity`]: a pid together with its start time.
//! - [`Start`]: a program to run, in a group or a session according to its [`Ownership`]; [`Child`]: a process that was
//!   started here.
//! - [`signal()`] and [`signal_group`]: signal exactly that process or its group, or no process.
//! - [`kill_tree`]: ends a process and all its descendants, up to the next shim; [`kill_descendants`]: ends all
//!   descendants of this process, shims too; [`kill_orphans`]: ends orphans that this process has adopted.
//! - [`task`]: a process tree that outlives the process that started it; [`shim`]: the process that supervises it.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod boot;
mod build;
mod cgroup;
mod child;
mod children;
mod error;
mod identity;
mod inherited;
mod inside;
mod memory;
mod name;
mod open_files;
mod peer;
mod reap;
pub mod shim;
mod shim_protocol;
mod signal;
mod snapshot;
mod start;
mod stat;
pub mod task;
mod tree;

pub use boot::{boot_id, machine_id};
pub use build::{build_of, copy_own_program, own_build, own_program};
pub use cgroup::{enter_runtime_group, remove_stale_cgroups, stale_cgroups};
pub use child::{Child, Exit};
pub use error::{Error, Result};
pub use identity::Identity;
pub use inherited::inherited_socket;
pub use inside::{Around, is_in_task, task_around};
pub use memory::{RUNTIME_BYTES, limit_own_memory};
pub use name::set_name;
pub use open_files::raise_open_files;
pub use peer::Peer;
pub use reap::{adopt_orphans, kill_orphans, reap_orphans};
pub use shim::Redactor;
pub use signal::{Delivery, Signal, signal, signal_group};
pub use start::{Ownership, Start};
pub use task::ended;
pub use tree::{descendants, kill_descendants, kill_tree};

#[cfg(test)]
mod tests;
