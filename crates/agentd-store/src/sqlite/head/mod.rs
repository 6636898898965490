//! The journal's head: the last events that were committed, in a small file beside the journal.
//!
//! The writer updates it after each commit and before the answers, with one write and no sync. A
//! commit is synced before that, so the head is never ahead of a healthy journal: one that ends
//! before its head has lost events that were acknowledged.

mod check;
mod slot;

pub use check::{agents_beside, behind, check, check_beginning, is_changed, last_event};
pub use slot::Tip;

use slot::{SLOT, SLOTS, Slot, TIPS};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// What there is of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// There is none: the journal is new, or older than this file.
    Absent,
    /// No slot is whole. A power cut can do that, since the head is never synced.
    Unreadable,
    /// The newest slot that is whole: the tips, newest first. Empty where the journal has no event.
    Whole(Vec<Tip>),
}

impl Found {
    pub fn tips(&self) -> &[Tip] {
        match self {
            Self::Whole(tips) => tips,
            Self::Absent | Self::Unreadable => &[],
        }
    }
}

/// Reads a head. A file that cannot be read is one that says nothing.
pub fn read(path: &Path) -> Found {
    match newest(path) {
        Ok(Some(slot)) => Found::Whole(slot.tips),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Found::Absent,
        Ok(None) | Err(_) => Found::Unreadable,
    }
}

fn newest(path: &Path) -> io::Result<Option<Slot>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take((SLOT * SLOTS) as u64).read_to_end(&mut bytes)?;
    let slots = bytes.chunks(SLOT).filter_map(Slot::decode);
    Ok(slots.max_by_key(|slot| slot.generation))
}

/// The head as its writer keeps it.
pub struct Head {
    path: PathBuf,
    /// None until it could be opened.
    file: Option<File>,
    newest: Slot,
    /// The last write failed: what the file says is older than the journal. The next commit writes it
    /// again; a process that dies before that leaves a head that is behind, which is harmless.
    stale: bool,
}

impl Head {
    /// Goes on from what the file says; `last` is the journal's last event. Never fails: a head that
    /// cannot be written is stale.
    pub fn open(path: PathBuf, last: Option<Tip>) -> Self {
        let found = newest(&path);
        let is_new = !matches!(found, Ok(Some(_)));
        let mut head = Self {
            path,
            file: None,
            newest: found.ok().flatten().unwrap_or_default(),
            stale: false,
        };
        let known = head.newest.tips.iter().map(|tip| tip.position).max();
        match last {
            Some(last) if Some(last.position) > known => head.record([last]),
            _ if is_new => head.record([]),
            _ => {}
        }
        head
    }

    /// Writes down what was just committed, oldest first: one write, not synced.
    pub fn record(&mut self, tips: impl IntoIterator<Item = Tip>) {
        for tip in tips {
            self.newest.tips.retain(|known| known.agent != tip.agent);
            self.newest.tips.insert(0, tip);
        }
        self.newest.tips.truncate(TIPS);
        self.newest.generation += 1;
        match self.write() {
            Ok(()) => self.stale = false,
            Err(error) => {
                if !self.stale {
                    tracing::warn!(%error, path = %self.path.display(), "journal head not written");
                }
                self.stale = true;
                self.file = None;
            }
        }
    }

    /// Another process may have written it since.
    pub fn reload(&mut self) {
        match newest(&self.path) {
            Ok(Some(slot)) if slot.generation > self.newest.generation => self.newest = slot,
            _ => {}
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => open(&self.path)?,
        };
        let slot = self.newest.generation % SLOTS as u64;
        file.write_all_at(&self.newest.encode(), slot * SLOT as u64)?;
        self.file = Some(file);
        Ok(())
    }
}

/// Opens the file with room for all slots: a disk that fills up later must not keep it from being
/// written.
fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    let size = (SLOT * SLOTS) as u64;
    let has = file.metadata()?.len();
    if has < size {
        let missing = usize::try_from(size - has).unwrap_or_default();
        file.write_all_at(&vec![0; missing], has)?;
    }
    Ok(file)
}
