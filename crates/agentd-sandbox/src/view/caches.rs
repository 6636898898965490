//! Tool caches in the plan.

use super::{Access, View, What, refuse, required, resolve};
use crate::error::Result;
use crate::policy::Caches;
use std::path::{Component, Path, PathBuf};

impl View {
    pub(super) fn add_caches(&mut self, caches: &Caches) -> Result<()> {
        let lower = resolve(&caches.lower)?.unwrap_or_else(|| caches.lower.clone());
        self.link(&caches.lower, &lower);
        let upper = required(&caches.upper)?;
        let of = self.caches.len();
        for name in &caches.names {
            let is_below = |part| matches!(part, Component::Normal(_));
            if !name.components().all(is_below) {
                return Err(refuse(name, "it is not the name of a directory below it"));
            }
            let at = below(&lower, name);
            let real = resolve(&at)?.unwrap_or_else(|| at.clone());
            if self.is_closed(&real) {
                return Err(refuse(&at, "it is in a closed directory"));
            }
            if !real.is_dir() && self.shows_the_hosts(&real) {
                // No mount can be put there without making a directory in a tree of the user's.
                continue;
            }
            self.link(&at, &real);
            let what = if real == at {
                let name = name.clone();
                What::Cache { of, name }
            } else {
                // The overlay of `lower` does not show what its symlinks name.
                let from = below(&upper, name);
                let access = Access::Write;
                What::Bind { from, access }
            };
            self.at.insert(real, what);
        }
        self.caches.push(Caches {
            lower,
            names: caches.names.clone(),
            upper,
            work: required(&caches.work)?,
        });
        Ok(())
    }

    /// Whether the view has at this path what the host has there.
    fn shows_the_hosts(&self, path: &Path) -> bool {
        let mut around = path.ancestors().skip(1);
        let around = around.find_map(|above| self.at.get_key_value(above));
        around.is_some_and(|(at, what)| matches!(what, What::Bind { from, .. } if from == at))
    }
}

/// Joining an empty name would add a slash.
pub fn below(dir: &Path, name: &Path) -> PathBuf {
    if name.as_os_str().is_empty() {
        dir.to_owned()
    } else {
        dir.join(name)
    }
}
