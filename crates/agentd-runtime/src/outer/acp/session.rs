//! The session of a conversation, as it is kept between two processes of the program.

use agentd_core::outer::acp::SESSION_FILE;
use agentd_files::own;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The longest id of a session.
pub const LONGEST_SESSION: usize = 1024;
/// How many earlier sessions are kept.
const MOST_EARLIER: usize = 20;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The program's own id.
    pub session: String,
    /// It was given a prompt, and with the first one the conversation so far.
    pub prompted: bool,
    /// What turns were charged for it, in US dollars. `None` if that is unknown.
    pub charged: Option<f64>,
    /// It does not work any more: no process uses it again.
    #[serde(default)]
    pub given_up: bool,
    /// The ids of sessions that the conversation had before, the newest last. A purge deletes them too.
    #[serde(default)]
    pub earlier: Vec<String>,
}

impl Kept {
    /// A session that has just begun.
    pub const fn new(session: String) -> Self {
        Self {
            session,
            prompted: false,
            charged: Some(0.0),
            given_up: false,
            earlier: Vec::new(),
        }
    }

    /// A session that has just begun in place of another one.
    pub fn after(session: String, before: Option<Self>) -> Self {
        let (mut earlier, last) = match before {
            Some(before) => (before.earlier, Some(before.session)),
            None => (Vec::new(), None),
        };
        earlier.extend(last);
        earlier.retain(|id| *id != session);
        earlier.drain(..earlier.len().saturating_sub(MOST_EARLIER));
        Self {
            earlier,
            ..Self::new(session)
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
        let text = own::read_to_string(self.path()).ok()?;
        // Earlier releases kept the id only.
        let kept = serde_json::from_str(&text).unwrap_or(Kept {
            session: text,
            prompted: true,
            charged: None,
            ..Kept::new(String::new())
        });
        let is_usable = !kept.session.is_empty() && kept.session.len() <= LONGEST_SESSION;
        is_usable.then_some(kept)
    }

    /// No process uses the session again. Without a session there is nothing to do.
    pub fn give_up(&self) -> io::Result<()> {
        match self.read() {
            Some(kept) if !kept.given_up => self.write(&Kept {
                given_up: true,
                ..kept
            }),
            _ => Ok(()),
        }
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
    fn a_session_that_is_given_up_is_kept_as_an_earlier_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = SessionFile::new(dir.path());
        file.give_up().unwrap();
        assert_eq!(file.read(), None);
        file.write(&Kept::new("s-1".to_owned())).unwrap();
        file.give_up().unwrap();
        file.give_up().unwrap();
        let kept = file.read().unwrap();
        assert!(kept.given_up);
        let next = Kept::after("s-2".to_owned(), Some(kept));
        assert_eq!(
            (next.given_up, &next.earlier[..]),
            (false, &["s-1".to_owned()][..])
        );
        // A program may use an id again.
        let again = Kept::after("s-1".to_owned(), Some(next.clone()));
        assert_eq!(again.earlier, ["s-2"]);
        let many = (0..100).fold(next, |kept, n| Kept::after(format!("n-{n}"), Some(kept)));
        assert_eq!(many.earlier.len(), MOST_EARLIER);
        assert_eq!(many.earlier.last().map(String::as_str), Some("n-98"));
        // As an earlier release wrote it.
        let old = r#"{"session":"s-3","prompted":true,"charged":1.5}"#;
        fs::write(dir.path().join(SESSION_FILE), old).unwrap();
        let old = file.read().unwrap();
        assert_eq!((old.session.as_str(), old.given_up), ("s-3", false));
    }

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
