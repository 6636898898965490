//! The same rules for a thread: file tools run on one, where a mount namespace cannot be had.

use crate::error::Result;
use crate::policy::{Network, Policy};
use crate::rules::{Writes, restrict_by_list};
use crate::view::{User, View};

/// Restricts the calling thread, for good: it reads what the policy shows and writes to the writable trees and to
/// `policy.tmp`. Other threads of the process are not restricted. Needs Landlock ABI 3.
///
/// Landlock can only add. Therefore, where a closed path lies in a tree, what is beside it is allowed, and no new entry
/// can be made in the directories on the way to it; and what a sandboxed process finds read-only in a git directory is
/// writable here. The caller refuses those paths itself: see [`is_protected`](crate::is_protected).
pub fn restrict_thread(policy: &Policy) -> Result<()> {
    let view = View::plan(policy, User::current())?;
    restrict_by_list(&view, Writes::Trees, Network::On, false)?;
    Ok(())
}
