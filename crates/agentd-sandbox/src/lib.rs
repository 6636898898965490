//! What a tool process may see, write and reach, enforced by the kernel.
//!
//! - [`Policy`]: the rules for one process, as data.
//! - [`start`]: runs a program under them, in namespaces of its own; [`start_without_namespaces`]: read-only, on a kernel
//!   that has none.
//! - [`OutsideGitDir`]: the git directory of a tree that has it elsewhere.
//! - [`restrict_thread`]: the same rules for a thread that opens files itself.
//! - [`reach`]: what a process under a policy finds at a path, for messages.
//! - [`shared`]: whether that is the file that the host has there.
//! - [`view_id`]: whether a view that was built earlier is still the one that the policy asks for.
//! - [`OwnHome`]: what a program has written to the agent's own home, for messages.
//! - [`support`]: what this kernel can do, and what to change where it cannot.
//!
//! It starts processes and never signals one outside. It may **not** know what an agent is, read the environment or
//! decide what a policy should say. See `docs/sandbox.md`.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod error;
mod gate;
mod git;
mod init;
mod leader;
mod own_home;
mod policy;
mod privileges;
mod reaper;
mod rules;
mod seccomp;
mod start;
mod support;
mod sys;
mod thread;
mod view;

pub use error::{Error, Result, Step};
pub use git::outside::OutsideGitDir;
pub use git::record::planted;
pub use git::refused::Refused;
pub use own_home::OwnHome;
pub use policy::{Caches, Extent, GitConfig, Network, Policy};
pub use start::{Ended, Program, Started, start, start_without_namespaces};
pub use support::{Missing, Support, support};
pub use thread::restrict_thread;
pub use view::git::{is_in_git_dir, is_protected, makes_git_dir};
pub use view::home::{CREDENTIALS, PROFILES};
pub use view::identity::{ViewId, view_id};
pub use view::private::private_paths;
pub use view::reach::{Reach, Shared, reach, shared};
