//! What is closed to a process, and what of it the policy opens by name.

use super::{User, View, home, private, resolve, system, tree_path};
use crate::error::Result;
use crate::policy::Policy;
use std::fs;
use std::path::{Path, PathBuf};

impl View {
    /// Closes the state directory, and credentials that the policy does not name. If it names a part of a directory of
    /// credentials, only that part is opened.
    pub(super) fn close(&mut self, policy: &Policy, user: User) -> Result<()> {
        let trees = policy.readable.iter().chain(&policy.writable);
        let trees: Vec<PathBuf> = trees.flat_map(|tree| tree_path(policy, tree)).collect();
        for path in &policy.closed {
            self.closed.extend(resolve(path)?);
        }
        let mut credentials: Vec<PathBuf> = Vec::new();
        if policy.home.is_absolute() {
            let there = super::existing(&policy.home, home::CREDENTIALS);
            credentials.extend(there.flat_map(fs::canonicalize));
        }
        if user == User::Root {
            credentials.extend(system::closed_for_root());
            credentials.extend(private::closed_by(policy));
        }
        let of_agentd = self.closed.clone();
        let is_state = |tree: &Path| of_agentd.iter().any(|closed| tree.starts_with(closed));
        for path in credentials {
            if trees.contains(&path) {
                continue;
            }
            let inside = trees.iter().filter(|tree| tree.starts_with(&path));
            let inside: Vec<PathBuf> = inside.filter(|tree| !is_state(tree)).cloned().collect();
            self.own.extend(inside.iter().cloned());
            self.opened.extend(inside);
            self.closed.push(path);
        }
        Ok(())
    }
}
