//! What was typed in the prompt line and not sent when the chat ended. It is kept in the agent's directory: the agent's tools
//! do not see it in their sandbox, and it is removed with the agent.

use crate::home;
use agentd_core::id::AgentId;
use agentd_daemon::layout::Layout;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;

/// A longer text is not kept, only printed.
const MAX_BYTES: usize = 256 * 1024;
/// JSON has up to six bytes for one of the text; the rest is for names of files.
const MAX_FILE_BYTES: u64 = 8 * MAX_BYTES as u64;

/// A text with what is known about its `@path` words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsent {
    pub text: String,
    /// The words that the user did not type: they attach no files.
    #[serde(default)]
    pub untyped: BTreeSet<String>,
    /// The files outside of the directory that the user chose with `/attach`.
    #[serde(default)]
    pub chosen: Vec<String>,
}

impl Unsent {
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}

/// The file of one agent. The newest text counts if several chats of the agent end.
pub struct UnsentFile {
    layout: Layout,
    dir: PathBuf,
    /// The text of an earlier chat that is in the prompt line of this one.
    taken: Option<Unsent>,
}

impl UnsentFile {
    /// None if the state directory of the daemon is not known.
    pub fn of(agent: AgentId) -> Option<Self> {
        if home::own_socket().is_some() {
            return None;
        }
        let home = home::dir().ok()?;
        Some(Self::new(Layout::new(home), agent))
    }

    fn new(layout: Layout, agent: AgentId) -> Self {
        let dir = layout.agent_dir(agent);
        Self {
            layout,
            dir,
            taken: None,
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.join("unsent.json")
    }

    /// What an earlier chat has left. It stays on disk until it is sent or cleared.
    pub fn take(&mut self) -> Option<Unsent> {
        self.taken = self.read();
        self.taken.clone()
    }

    /// None without a file, and for one that cannot be read: the chat opens anyway.
    fn read(&self) -> Option<Unsent> {
        let file = File::open(self.path()).ok()?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// The text of the earlier chat was sent or cleared. What another chat has left meanwhile stays.
    pub fn forget(&mut self) {
        let Some(taken) = self.taken.take() else {
            return;
        };
        if self.read().is_some_and(|found| found == taken) {
            // If it cannot be removed, it is in the next chat's prompt line, where the user sees it.
            let _stays = fs::remove_file(self.path());
        }
    }

    /// The chat ends with this text. Returns whether it is on disk.
    pub fn keep(&mut self, unsent: &Unsent) -> bool {
        if unsent.is_blank() {
            self.forget();
            return false;
        }
        unsent.text.len() <= MAX_BYTES && self.write(unsent).is_ok()
    }

    fn write(&self, unsent: &Unsent) -> io::Result<()> {
        self.layout.make_below(&self.dir)?;
        // Its mode is 0600.
        let mut file = tempfile::Builder::new()
            .prefix("unsent-")
            .tempfile_in(&self.dir)?;
        file.write_all(&serde_json::to_vec(unsent)?)?;
        file.as_file().sync_all()?;
        file.persist(self.path())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use uuid::Uuid;

    fn file(home: &tempfile::TempDir) -> UnsentFile {
        UnsentFile::new(Layout::new(home.path()), AgentId::new(Uuid::nil()))
    }

    fn text(text: &str) -> Unsent {
        Unsent {
            text: text.to_owned(),
            ..Unsent::default()
        }
    }

    #[test]
    fn a_text_is_kept_for_its_user_alone_until_it_is_sent_or_cleared() {
        let home = tempfile::tempdir().unwrap();
        let unsent = Unsent {
            text: "see @a\n\"b\"".to_owned(),
            untyped: BTreeSet::from(["@a".to_owned()]),
            chosen: vec!["/b".to_owned()],
        };
        assert_eq!(file(&home).take(), None);
        assert!(file(&home).keep(&unsent));
        let mut next = file(&home);
        assert_eq!(next.take(), Some(unsent));
        let mode = fs::metadata(next.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(&next.dir).unwrap().count(), 1);
        next.forget();
        assert_eq!(file(&home).take(), None);
    }

    #[test]
    fn a_chat_that_ends_without_a_text_removes_only_the_one_that_it_has_taken() {
        let home = tempfile::tempdir().unwrap();
        assert!(file(&home).keep(&text("first")));
        let (mut one, mut other) = (file(&home), file(&home));
        one.take();
        assert!(other.keep(&text("second")));
        assert!(!one.keep(&text(" \n")));
        assert!(!file(&home).keep(&text("")));
        assert_eq!(file(&home).take(), Some(text("second")));
        other.take();
        assert!(!other.keep(&text("")));
        assert_eq!(file(&home).take(), None);
    }

    #[test]
    fn a_text_that_is_too_long_and_a_file_that_is_damaged_are_left_out() {
        let home = tempfile::tempdir().unwrap();
        let longest = "\u{1}".repeat(MAX_BYTES);
        assert!(file(&home).keep(&text(&longest)));
        assert_eq!(file(&home).take(), Some(text(&longest)));
        assert!(!file(&home).keep(&text(&format!("{longest}x"))));
        fs::write(file(&home).path(), "{").unwrap();
        assert_eq!(file(&home).take(), None);
    }
}
