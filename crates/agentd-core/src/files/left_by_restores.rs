//! What restores left at paths that no recorded change has touched since. A scan because of background commands also finds
//! what a restore wrote between two turns: that is not another change.

use super::change::{Change, Left};
use crate::event::FileSeen;
use std::collections::BTreeMap;

/// By the name that [`FileSeen::file_of`] gives to a path.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftByRestores(BTreeMap<String, Left>);

impl LeftByRestores {
    pub fn restored(&mut self, path: &str, left: Left) {
        self.0.insert(FileSeen::file_of(path.as_bytes()), left);
    }

    /// A path was changed, or may have been.
    pub fn changed(&mut self, path: &str) {
        if !self.0.is_empty() {
            self.0.remove(&FileSeen::file_of(path.as_bytes()));
        }
    }

    /// The same for a path of which only the name is known, or not even that.
    pub fn changed_file(&mut self, file: Option<&str>) {
        match file {
            Some(file) => drop(self.0.remove(file)),
            None => self.0.clear(),
        }
    }

    /// Whether a scan has found nothing at a path but what a restore left. If it is sure of the change, a command has at
    /// least changed the permissions.
    pub fn has(&self, found: &Change) -> bool {
        if self.0.is_empty() || !found.unsure || found.mode_before.is_some() {
            return false;
        }
        let left = self.0.get(&FileSeen::file_of(found.path.as_bytes()));
        left.is_some_and(|left| left.is_same(&found.after))
    }
}
