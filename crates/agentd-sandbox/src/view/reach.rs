//! What a sandboxed process finds at a path, according to the plan: for messages, not for enforcement.

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

impl View {
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
                What::Way => Reach::Own,
                What::Bind { .. } if self.is_own_dir(at) => Reach::Own,
                What::Bind { access, .. } | What::Pin { access } => match access {
                    Access::Read => Reach::Read,
                    Access::Write => Reach::Write,
                },
                What::Cache { .. } | What::Memory => Reach::Write,
                What::Dir if *at == path => Reach::Read,
                What::Dir | What::Closed | What::Hidden => Reach::Hidden,
            };
        }
        Reach::Hidden
    }
}
