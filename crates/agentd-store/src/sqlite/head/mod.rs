//! The journal's head: the last committed events, in a small file beside the journal.
//!
//! The writer updates it after each commit and before the answers, with one write and no sync. A
//! commit is synced before that, so the head is never ahead of an intact journal: a journal that ends
//! before its head has lost acknowledged events.

mod check;
mod slot;

pub use check::{behind, check, check_beginning, is_changed, last_event};
pub use slot::Tip;

use slot::{SLOT, SLOTS, Slot, TIPS};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// What was found of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// There is none: the journal is new, or an older agentd wrote it.
    Absent,
    /// Neither slot is intact. A power failure can cause that, since the head is never synced.
    Unreadable,
    /// The newest intact slot: the tips, newest first. Empty if the journal has no event.
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

/// Reads a head. A file that cannot be read counts as `Unreadable`.
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

/// The head as the writer keeps it.
pub struct Head {
    path: PathBuf,
    /// None until the file could be opened.
    file: Option<File>,
    newest: Slot,
    /// The last write failed, so the file is older than the journal. The next commit writes it again. If the process
    /// dies before that, the head is behind the journal, which is harmless.
    stale: bool,
}

impl Head {
    /// Continues from the contents of the file; `last` is the journal's last event. Never fails: a head that
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

    /// Writes what was just committed, oldest first: one write, not synced.
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

    /// Reads the file again: another process may have written it.
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

/// Opens the file and reserves space for both slots, so that later writes succeed on a full disk.
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
