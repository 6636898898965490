//! The agent's own directories that replace the user's in the view: the home and `/tmp`.

use super::{Access, View, What, required};
use crate::error::Result;
use std::path::{Component, Path, PathBuf};

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
            let is_mount = !matches!(what, What::Dir | What::Link { .. } | What::Way { .. });
            if is_mount && let Some(own) = self.own_around(path) {
                let access = self.beside(&own, path, what);
                let above = path.ancestors().skip(1);
                let above = above.take_while(|above| *above != own);
                ways.extend(above.map(|above| (above.to_owned(), access)));
            }
        }
        for (path, access) in ways {
            let way = self.at.entry(path).or_insert(What::Way { access });
            // One tree below it is enough.
            if access == Access::Read && matches!(way, What::Way { .. }) {
                *way = What::Way { access };
            }
        }
    }

    /// What tools may do in the directories between an own directory and a mount in it. Nothing beside a tree of the user's,
    /// unless one of the directories is hidden: in those, programs keep settings and data that the user does not look for.
    fn beside(&self, own: &Path, path: &Path, what: &What) -> Access {
        let is_tree = match what {
            What::Bind { from, .. } => from == path && !self.shown.iter().any(|it| it == path),
            _ => false,
        };
        let between = path
            .parent()
            .and_then(|parent| parent.strip_prefix(own).ok());
        let is_hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
        let is_between_hidden = between.is_some_and(|it| it.components().any(is_hidden));
        match is_tree && !is_between_hidden {
            true => Access::Read,
            false => Access::Write,
        }
    }

    /// Whether the view has an entry at this path or below it.
    pub fn has_in(&self, path: &Path) -> bool {
        let mut from = self.at.range(path.to_owned()..);
        from.next().is_some_and(|(at, _)| at.starts_with(path))
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
