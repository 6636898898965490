//! The mark that `agentd daemon stop` leaves behind. Clients that were under way when it was typed read it and do not
//! start another daemon; a command that is typed later does. A daemon that is killed or that gets SIGTERM leaves
//! none, and is replaced.

use crate::layout::Layout;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopMark {
    /// Which stop: a client compares it with the one that it found when it began.
    pub id: Uuid,
    /// The daemon that was told to stop.
    pub pid: u32,
    /// The agents' processes have ended. Without it, the daemon died before it came so far.
    pub complete: bool,
}

impl StopMark {
    fn path(layout: &Layout) -> PathBuf {
        layout.run().join("stopped")
    }

    /// The mark of the last stop; none since a daemon has been started again. One that cannot be read is none: the
    /// worst that follows is a daemon that is started.
    pub fn read(layout: &Layout) -> Option<Self> {
        let text = std::fs::read(Self::path(layout)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Replaces the mark in one step.
    pub fn write(&self, layout: &Layout) -> io::Result<()> {
        let path = Self::path(layout);
        let new = path.with_extension("new");
        std::fs::write(&new, serde_json::to_vec(self)?)?;
        std::fs::rename(new, path)
    }

    /// A daemon runs again.
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
