//! The scheduled backup that could not be made.

use crate::clock;
use agentd_client::api;
use std::fmt::Display;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Kept in memory only: a new daemon tries at once, and learns it again.
#[derive(Default)]
pub struct FailingBackup(Mutex<Option<api::FailingBackup>>);

impl FailingBackup {
    fn inner(&self) -> MutexGuard<'_, Option<api::FailingBackup>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self) -> Option<api::FailingBackup> {
        self.inner().clone()
    }

    /// Records a failed attempt. Returns how many there were, with this one.
    pub fn add(&self, directory: &Path, error: &dyn Display) -> u32 {
        let mut inner = self.inner();
        let known = inner.get_or_insert_with(|| api::FailingBackup {
            directory: directory.display().to_string(),
            since: clock::now(),
            attempts: 0,
            error: String::new(),
        });
        known.attempts = known.attempts.saturating_add(1);
        known.error = error.to_string();
        known.attempts
    }

    /// A backup was made.
    pub fn clear(&self) {
        *self.inner() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_of_several_failures_are_known_until_a_backup_is_made() {
        let failing = FailingBackup::default();
        assert_eq!(failing.get(), None);
        assert_eq!(failing.add(Path::new("/b"), &"the disk is full"), 1);
        let first = failing.get().unwrap();
        assert_eq!(failing.add(Path::new("/b"), &"it is read-only"), 2);
        let second = failing.get().unwrap();
        assert_eq!((second.attempts, second.since), (2, first.since));
        assert_eq!(second.error, "it is read-only");
        failing.clear();
        assert_eq!(failing.get(), None);
    }
}
