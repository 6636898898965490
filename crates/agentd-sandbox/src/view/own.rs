//! The agent's own directories that replace the user's in the view: the home and `/tmp`.

use super::{Access, View, What, required};
use crate::error::Result;
use std::path::{Path, PathBuf};

impl View {
    /// A writable directory that agentd keeps for the agent, under another path than its own.
    pub(super) fn own_bind(&mut self, dir: &Path) -> Result<What> {
        let from = required(dir)?;
        self.own.push(from.clone());
        let access = Access::Write;
        Ok(What::Bind { from, access })
    }

    /// Whether the agent finds a directory of its own at this path, and not what the host has there.
    pub(super) fn is_own_dir(&self, path: &Path) -> bool {
        match self.at.get(path) {
            Some(What::Bind { from, access }) => *access == Access::Write && from != path,
            _ => false,
        }
    }

    /// A tool could replace a parent directory of a mount by a symlink, and the next sandbox could not be built. These
    /// directories are therefore pinned.
    pub(super) fn hold_ways(&mut self) {
        let mut ways = Vec::new();
        for (path, what) in &self.at {
            let is_mount = !matches!(what, What::Dir | What::Link { .. } | What::Way);
            if is_mount && let Some(own) = self.own_around(path) {
                let above = path.ancestors().skip(1);
                let above = above.take_while(|above| *above != own);
                ways.extend(above.map(Path::to_owned));
            }
        }
        for path in ways {
            self.at.entry(path).or_insert(What::Way);
        }
    }

    /// The directory of the agent's own that a path lies in.
    pub(super) fn own_around(&self, path: &Path) -> Option<PathBuf> {
        let mut around = path.ancestors().skip(1).filter_map(|above| {
            let (at, what) = self.at.get_key_value(above)?;
            let is_transparent = matches!(what, What::Pin { .. } | What::Dir | What::Link { .. });
            (!is_transparent).then_some(at)
        });
        around.next().filter(|at| self.is_own_dir(at)).cloned()
    }
}
