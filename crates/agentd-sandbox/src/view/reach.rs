//! What a sandboxed process finds at a path, according to the plan: for messages and decisions, not for enforcement.

use super::{Access, User, View, What};
use crate::error::Result;
use crate::policy::Policy;
use std::path::{Path, PathBuf};

/// What a sandboxed process can do at a path of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The path is not in the sandbox, whether or not the host has something there.
    Hidden,
    /// In the sandbox the path belongs to a directory of the agent's own, such as its home. It is writable, and what
    /// the host has there is hidden.
    Own,
    /// The same, but read-only: a directory between the agent's own and a tree of the user's.
    OwnRead,
    Read,
    Write,
}

/// As many symlinks in a row as Linux follows.
const MAX_LINKS: usize = 40;

/// What a process under this policy finds at each of the paths, which must be absolute and without `..`.
///
/// # Errors
///
/// If the policy itself is refused.
pub fn reach(policy: &Policy, paths: &[PathBuf]) -> Result<Vec<Reach>> {
    let view = View::plan(policy, User::current())?;
    Ok(paths.iter().map(|path| view.reach(path)).collect())
}

/// Whether a sandboxed process finds at a path the file that the host has there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// It finds nothing, or a file of the agent's own: in its home, its `/tmp` or its layer of a cache.
    No,
    Read,
    Write,
}

/// Whether a process under this policy finds what the host has at each of the paths, which must be absolute, and without
/// symlinks and `..`.
///
/// # Errors
///
/// If the policy itself is refused.
pub fn shared(policy: &Policy, paths: &[PathBuf]) -> Result<Vec<Shared>> {
    let view = View::plan(policy, User::current())?;
    Ok(paths.iter().map(|path| view.shared(path)).collect())
}

impl View {
    fn shared(&self, path: &Path) -> Shared {
        let mut may_write = true;
        for above in path.ancestors() {
            match self.at.get(above) {
                None => {}
                // What is pinned is what the tree around it shows.
                Some(What::Pin { access }) => may_write &= *access == Access::Write,
                Some(What::Bind { from, access }) if from == above => {
                    may_write &= *access == Access::Write;
                    return match may_write {
                        true => Shared::Write,
                        false => Shared::Read,
                    };
                }
                Some(_) => return Shared::No,
            }
        }
        Shared::No
    }

    fn reach(&self, path: &Path) -> Reach {
        let mut path = path.to_owned();
        for _ in 0..MAX_LINKS {
            let found = path
                .ancestors()
                .find_map(|above| self.at.get_key_value(above));
            let Some((at, what)) = found else {
                return Reach::Hidden;
            };
            return match what {
                What::Link { to } => {
                    let below = path.strip_prefix(at).unwrap_or(Path::new(""));
                    let from = at.parent().unwrap_or(Path::new("/"));
                    path = from.join(to).join(below);
                    continue;
                }
                What::Way {
                    access: Access::Write,
                } => Reach::Own,
                What::Way { .. } => Reach::OwnRead,
                What::Bind { .. } if self.is_own_dir(at) => Reach::Own,
                What::Bind { access, .. } | What::Pin { access } => match access {
                    Access::Read => Reach::Read,
                    Access::Write => Reach::Write,
                },
                What::Cache { .. } | What::Memory => Reach::Write,
                What::Over { .. } => Reach::Read,
                What::Dir if *at == path => Reach::Read,
                What::Dir | What::Closed | What::Hidden => Reach::Hidden,
            };
        }
        Reach::Hidden
    }
}
