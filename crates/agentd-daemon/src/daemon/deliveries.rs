//! How the destinations of messages are doing, and what all deliveries share. Only in memory: the positions of the
//! destinations are on disk.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::{Notify, watch};

pub struct Deliveries {
    /// The destinations whose next message could not be delivered, by name. Changed by the task of the destination.
    failing: Mutex<HashMap<String, Failing>>,
    /// Created with the first message.
    pub client: OnceLock<Option<reqwest::Client>>,
    /// The same for webhooks on this machine, which a proxy does not reach.
    pub near_client: OnceLock<Option<reqwest::Client>>,
    /// Wakes destinations that wait to try again: a secret was stored.
    pub again: Notify,
    /// Held while the list of the daemon's own troubles is changed.
    pub trouble_file: tokio::sync::Mutex<()>,
    /// Counts the troubles that were added to the list, for the tasks of the destinations.
    pub troubles: watch::Sender<u64>,
}

impl Default for Deliveries {
    fn default() -> Self {
        Self {
            failing: Mutex::default(),
            client: OnceLock::new(),
            near_client: OnceLock::new(),
            again: Notify::new(),
            trouble_file: tokio::sync::Mutex::default(),
            troubles: watch::channel(0).0,
        }
    }
}

/// A destination whose next message could not be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// Attempts in a row.
    pub attempts: u32,
    /// Why the last one failed.
    pub why: String,
}

impl Deliveries {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Failing>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn failing(&self, destination: &str) -> Option<Failing> {
        self.all().get(destination).cloned()
    }

    /// The failing destinations whose names begin so, without the beginning.
    pub fn failing_with(&self, prefix: &str) -> Vec<(String, Failing)> {
        let all = self.all();
        let found = all.iter().filter_map(|(name, failing)| {
            let rest = name.strip_prefix(prefix)?;
            Some((rest.to_owned(), failing.clone()))
        });
        let mut found: Vec<_> = found.collect();
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        found
    }

    pub fn set_failing(&self, destination: &str, failing: Failing) {
        self.all().insert(destination.to_owned(), failing);
    }

    pub fn works(&self, destination: &str) {
        self.all().remove(destination);
    }
}
