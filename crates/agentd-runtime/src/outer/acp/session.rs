//! The session of a conversation, as it is kept between two processes of the program.

use agentd_core::outer::acp::SESSION_FILE;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The longest id of a session.
pub const LONGEST_SESSION: usize = 1024;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The program's own id.
    pub session: String,
    /// It was given a prompt, and with the first one the conversation so far.
    pub prompted: bool,
    /// What turns were charged for it, in US dollars. `None` if that is unknown.
    pub charged: Option<f64>,
}

impl Kept {
    /// A session that has just begun.
    pub const fn new(session: String) -> Self {
        Self {
            session,
            prompted: false,
            charged: Some(0.0),
        }
    }
}

/// The file with the conversation's session.
pub struct SessionFile {
    dir: PathBuf,
}

impl SessionFile {
    pub fn new(dir: &Path) -> Self {
        let dir = dir.to_owned();
        Self { dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.join(SESSION_FILE)
    }

    pub fn read(&self) -> Option<Kept> {
        let text = fs::read_to_string(self.path()).ok()?;
        // Earlier releases kept the id only.
        let kept = serde_json::from_str(&text).unwrap_or(Kept {
            session: text,
            prompted: true,
            charged: None,
        });
        let is_usable = !kept.session.is_empty() && kept.session.len() <= LONGEST_SESSION;
        is_usable.then_some(kept)
    }

    /// Replaces the file as a whole: a crash leaves the old one or the new one.
    pub fn write(&self, kept: &Kept) -> io::Result<()> {
        let new = self.path().with_extension("new");
        let mut file = fs::File::create(&new)?;
        file.write_all(serde_json::to_string(kept)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, self.path())?;
        fs::File::open(&self.dir)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_kept_with_what_is_known_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = SessionFile::new(dir.path());
        assert_eq!(file.read(), None);
        let mut kept = Kept::new("s-1".to_owned());
        file.write(&kept).unwrap();
        assert_eq!(file.read(), Some(kept.clone()));
        kept.prompted = true;
        kept.charged = Some(1.25);
        file.write(&kept).unwrap();
        assert_eq!(file.read(), Some(kept));
        // As an earlier release wrote it.
        fs::write(dir.path().join(SESSION_FILE), "s-2").unwrap();
        let old = file.read().unwrap();
        assert_eq!((old.session.as_str(), old.prompted), ("s-2", true));
        assert_eq!(old.charged, None);
        fs::write(
            dir.path().join(SESSION_FILE),
            "x".repeat(LONGEST_SESSION + 1),
        )
        .unwrap();
        assert_eq!(file.read(), None);
    }
}
