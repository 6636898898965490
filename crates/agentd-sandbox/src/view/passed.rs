//! Sockets and files of the user's services that the user has chosen by name.

use super::{Access, View, What, resolve};
use crate::policy::Policy;
use std::path::{Path, PathBuf};

/// One that the view shows.
pub(super) struct Passed {
    path: PathBuf,
    /// Without symlinks.
    pub real: PathBuf,
}

impl View {
    /// Those that may be shown. The others are left out: a service that is not there is no reason not to run a tool.
    pub(super) fn passed(&self, policy: &Policy) -> Vec<Passed> {
        let closed = policy.closed.iter();
        let closed: Vec<PathBuf> = closed
            .flat_map(|path| resolve(path).ok().flatten())
            .collect();
        let is_allowed = |path: &Path, real: &Path| {
            let mut writable = policy.writable.iter();
            let is_changeable = real != path && writable.any(|tree| path.starts_with(tree));
            let is_own = super::OWN.iter().any(|own| real.starts_with(own));
            !is_changeable && !is_own && !closed.iter().any(|closed| real.starts_with(closed))
        };
        let all = policy.passed.iter().filter_map(|path| {
            let real = resolve(path).ok().flatten()?;
            is_allowed(path, &real).then(|| Passed {
                path: path.clone(),
                real,
            })
        });
        all.collect()
    }

    pub(super) fn add_passed(&mut self, passed: &[Passed]) {
        for Passed { path, real } in passed {
            self.own.push(real.clone());
            let at = self.place_of(path, real);
            let from = real.clone();
            let access = Access::Read;
            self.at.insert(at, What::Bind { from, access });
        }
    }

    /// Where programs look for it: at its own path, if that is in the agent's home or `/tmp`, and otherwise where it is.
    fn place_of(&mut self, path: &Path, real: &Path) -> PathBuf {
        if self.own_around(path).is_some() {
            return path.to_owned();
        }
        let mut above = path.ancestors().skip(1);
        // The view has a link of the host there, which leads to the same file.
        let is_linked = above.any(|above| matches!(self.at.get(above), Some(What::Link { .. })));
        if !is_linked {
            self.link(path, real);
        }
        real.to_owned()
    }
}
