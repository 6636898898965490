//! The commands of users whose end a task of this daemon waits for and records.

use agentd_core::id::CommandId;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub struct WatchedCommands {
    watched: Mutex<HashSet<CommandId>>,
}

impl WatchedCommands {
    fn lock(&self) -> MutexGuard<'_, HashSet<CommandId>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns false if it is watched already.
    pub fn watch(&self, command: CommandId) -> bool {
        self.lock().insert(command)
    }

    pub fn forget(&self, command: CommandId) {
        self.lock().remove(&command);
    }
}
