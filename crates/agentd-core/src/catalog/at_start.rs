//! The settings that the daemon uses only when it starts: a reload does not change them.

use super::{BackupSettings, Catalog, DaemonSettings, NotifySettings};

/// These settings, as they were when the daemon started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtStart {
    daemon: DaemonSettings,
    notify: NotifySettings,
    backup: Option<BackupSettings>,
}

impl AtStart {
    pub fn of(catalog: &Catalog) -> Self {
        Self {
            daemon: *catalog.daemon(),
            notify: catalog.notify().clone(),
            backup: catalog.backup().cloned(),
        }
    }

    /// The names of those that are different now.
    pub fn changed(&self, now: &Catalog) -> Vec<&'static str> {
        let now = Self::of(now);
        let (then, daemon) = (&self.daemon, &now.daemon);
        let changed = [
            ("notify", self.notify != now.notify),
            ("backup", self.backup != now.backup),
            ("daemon.orphan_ms", then.orphan_ms != daemon.orphan_ms),
            ("daemon.log", then.log != daemon.log),
            ("daemon.supervisor", then.supervisor != daemon.supervisor),
        ];
        let changed = changed.into_iter().filter(|(_, is_changed)| *is_changed);
        changed.map(|(name, _)| name).collect()
    }
}
