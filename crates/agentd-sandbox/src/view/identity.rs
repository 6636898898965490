//! Whether a view that was built earlier still shows what a new one would.

use super::{User, View, What};
use crate::error::Result;
use crate::policy::Policy;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

/// The plan of a view, and which files and directories of the host it mounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewId(u64);

/// What a view of this policy would be now. It is another one if the plan is another one, or if one of the files and
/// directories that it mounts was replaced: a mount stays on the file that it was made of.
///
/// # Errors
///
/// If the policy itself is refused.
pub fn view_id(policy: &Policy) -> Result<ViewId> {
    let view = View::plan(policy, User::current())?;
    let mut hasher = DefaultHasher::new();
    policy.network.hash(&mut hasher);
    for (path, what) in &view.at {
        (path, what).hash(&mut hasher);
        match what {
            What::Bind { from, .. } => file_id(from).hash(&mut hasher),
            // The mount on a file that is removed goes with it, and another file may have its name.
            What::Pin { .. } | What::Closed | What::Hidden => file_id(path).hash(&mut hasher),
            _ => {}
        }
    }
    Ok(ViewId(hasher.finish()))
}

/// `None` if there is nothing. With the time at which it was made, where the file system knows it: a new file may have the
/// number of a removed one.
fn file_id(path: &Path) -> Option<(u64, u64, Option<SystemTime>)> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.created().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_that_is_replaced_and_a_path_that_is_protected_make_another_view() {
        let dir = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(dir.path()).unwrap();
        let tree = base.join("tree");
        fs::create_dir(&tree).unwrap();
        let policy = Policy {
            writable: vec![tree.clone()],
            ..Policy::default()
        };
        let id = || view_id(&policy).unwrap();
        let first = id();
        fs::write(tree.join("file"), "").unwrap();
        assert_eq!(id(), first, "files in a tree do not matter");
        fs::rename(&tree, base.join("other")).unwrap();
        fs::create_dir(&tree).unwrap();
        let replaced = id();
        assert_ne!(replaced, first);
        fs::create_dir_all(tree.join(".git/hooks")).unwrap();
        fs::write(tree.join(".git/HEAD"), "ref: refs/heads/main").unwrap();
        assert_ne!(id(), replaced);
    }

    /// Regression: the view was used again, in which the new file was not covered.
    #[test]
    fn a_closed_file_that_is_replaced_makes_another_view() {
        let dir = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(dir.path()).unwrap();
        let secret = base.join("secret");
        let policy = Policy {
            readable: vec![base.clone()],
            closed: vec![secret.clone()],
            ..Policy::default()
        };
        let id = || view_id(&policy).unwrap();
        fs::write(&secret, "").unwrap();
        let first = id();
        assert_eq!(id(), first);
        let other = base.join("other");
        fs::write(&other, "").unwrap();
        fs::rename(&other, &secret).unwrap();
        assert_ne!(id(), first);
    }
}
