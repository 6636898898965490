//! The settings that `agentd daemon reload` replaces while the daemon runs.

use agentd_core::admission::Rules;
use agentd_core::catalog::Catalog;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

const MEGABYTE: u64 = 1_000_000;

pub struct LiveSettings {
    /// Replaced as a whole, so that no reader sees a part of two versions.
    current: RwLock<Arc<Current>>,
}

pub struct Current {
    /// The providers and models. The limits of attachments depend on an agent's provider.
    pub catalog: Catalog,
    /// Names of the variables that hold provider keys. Their values are redacted.
    pub key_names: BTreeSet<String>,
    /// How long a reset or a stop waits for all SessionEnd hooks together.
    pub session_end_wait: Duration,
    /// When turns wait.
    pub rules: Rules,
}

impl Current {
    pub fn of(catalog: Catalog) -> Self {
        let daemon = catalog.daemon();
        Self {
            key_names: catalog.key_names(),
            session_end_wait: Duration::from_millis(daemon.session_end_wait_ms),
            rules: Rules {
                max_turns: daemon.max_turns,
                day_usd: daemon.day.usd,
                min_free: daemon.min_free_mb.map(|mb| mb.saturating_mul(MEGABYTE)),
            },
            catalog,
        }
    }
}

impl LiveSettings {
    pub fn new(current: Current) -> Self {
        Self {
            current: RwLock::new(Arc::new(current)),
        }
    }

    pub fn get(&self) -> Arc<Current> {
        let current = self.current.read();
        Arc::clone(&current.unwrap_or_else(PoisonError::into_inner))
    }

    pub fn replace(&self, current: Current) {
        let mut known = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *known = Arc::new(current);
    }
}
