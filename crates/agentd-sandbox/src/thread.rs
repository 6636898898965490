//! The same rules for a thread, which cannot have its own mount namespace: for scans, and for file tools on a kernel without
//! namespaces.

use crate::error::Result;
use crate::policy::{Network, Policy};
use crate::rules::{Writes, restrict_by_list};
use crate::view::{User, View};

/// Restricts the calling thread permanently: it may read what the policy shows and write to the writable trees and to
/// `policy.tmp`. Other threads of the process are not restricted. Needs Landlock ABI 3.
///
/// Landlock rules only add rights. If a tree contains a closed path, the entries beside that path are allowed one by
/// one, and no entry can be created in its parent directories. The parts of a git directory that are read-only in a
/// view are writable here. The caller refuses those paths itself: see [`is_protected`](crate::is_protected).
pub fn restrict_thread(policy: &Policy) -> Result<()> {
    let view = View::plan(policy, User::current())?;
    restrict_by_list(&view, Writes::Trees, Network::On, false)?;
    Ok(())
}
