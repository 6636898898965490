//! The file that `agentd daemon stop` leaves behind. Clients that were already running read it and do not start another
//! daemon; a command that is started later does. A daemon that is killed or gets SIGTERM leaves no mark, so clients
//! replace it.

use crate::layout::Layout;
use agentd_files::own;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopMark {
    /// Identifies the stop: a client compares it with the mark that it found when it started.
    pub id: Uuid,
    /// The daemon that was told to stop.
    pub pid: u32,
    /// The agents' processes have ended. False while the daemon is stopping, or if it died before they had ended.
    pub complete: bool,
}

impl StopMark {
    fn path(layout: &Layout) -> PathBuf {
        layout.run().join("stopped")
    }

    /// The mark of the last stop, if no daemon was started after it. A mark that cannot be read counts as none: at
    /// worst a client starts a daemon.
    pub fn read(layout: &Layout) -> Option<Self> {
        let text = own::read(Self::path(layout)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Replaces the mark in one step.
    pub fn write(&self, layout: &Layout) -> io::Result<()> {
        let path = Self::path(layout);
        let new = path.with_extension("new");
        std::fs::write(&new, serde_json::to_vec(self)?)?;
        std::fs::rename(new, path)
    }

    /// Called when a daemon starts.
    pub fn remove(layout: &Layout) -> io::Result<()> {
        match std::fs::remove_file(Self::path(layout)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_there_until_it_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout::new(home.path());
        layout.make().unwrap();
        assert_eq!(StopMark::read(&layout), None);
        StopMark::remove(&layout).unwrap();
        let mark = StopMark {
            id: Uuid::nil(),
            pid: 1,
            complete: false,
        };
        mark.write(&layout).unwrap();
        assert_eq!(StopMark::read(&layout), Some(mark));
        StopMark::remove(&layout).unwrap();
        assert_eq!(StopMark::read(&layout), None);
    }
}
