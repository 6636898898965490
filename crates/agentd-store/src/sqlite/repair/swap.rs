//! Moves the damaged files aside and the new ones into place. After a crash, either nothing has been replaced, or a
//! mark is left and the next repair completes the replacement.

use crate::error::{Error, Result};
use crate::sqlite::options::{Options, REPLACING};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const FILES: [&str; 3] = ["journal.db", "journal.db-wal", "journal.head"];
const DERIVED: [&str; 5] = [
    "derived.db",
    "derived.db-wal",
    "derived.db-shm",
    "journal.db-shm",
    "journal.db-wal",
];

pub struct Swap {
    options: Options,
}

impl Swap {
    /// Where the new journal is created.
    pub fn work(&self) -> PathBuf {
        self.options.dir.join("repair.work")
    }

    /// The damaged files during the repair: hard links, under their own names.
    pub fn damaged(&self) -> PathBuf {
        self.options.damaged()
    }

    /// Links the files as they are now. The originals are not changed before [`Self::finish`].
    pub fn begin(options: &Options) -> Result<Self> {
        let swap = Self {
            options: options.clone(),
        };
        swap.keep().map_err(Error::RepairIo)?;
        Ok(swap)
    }

    fn keep(&self) -> io::Result<()> {
        for dir in [self.damaged(), self.work()] {
            remove_dir(&dir)?;
            fs::create_dir(&dir)?;
        }
        for name in FILES {
            let linked = fs::hard_link(self.options.dir.join(name), self.damaged().join(name));
            match linked {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                linked => linked?,
            }
        }
        sync(&self.damaged())
    }

    /// Moves the new files into place, and returns where the damaged ones are kept.
    pub fn finish(self) -> Result<PathBuf> {
        self.replace().map_err(Error::RepairIo)
    }

    fn replace(&self) -> io::Result<PathBuf> {
        let (work, damaged) = (self.work(), self.damaged());
        if !self.options.is_replacing() {
            sync(&work)?;
            fs::write(self.options.replacing(), b"")?;
            sync(&damaged)?;
        }
        if work.join("journal.db").exists() {
            // The old log must be gone before the new file gets its name. The hard link keeps its content.
            for name in DERIVED {
                remove_file(&self.options.dir.join(name))?;
            }
            sync(&self.options.dir)?;
            fs::rename(work.join("journal.db"), self.options.dir.join("journal.db"))?;
        }
        if work.join("journal.head").exists() {
            fs::rename(
                work.join("journal.head"),
                self.options.dir.join("journal.head"),
            )?;
        }
        sync(&self.options.dir)?;
        remove_dir(&work)?;
        let kept = self.free_name();
        fs::rename(&damaged, &kept)?;
        sync(&self.options.dir)?;
        remove_file(&kept.join(REPLACING))?;
        Ok(kept)
    }

    fn free_name(&self) -> PathBuf {
        let name = |n: u32| self.options.dir.join(format!("damaged-{n}"));
        let free = (1..).map(name).find(|path| !path.exists());
        free.unwrap_or_else(|| name(0))
    }
}

/// Completes a repair that was interrupted.
pub fn finish_earlier(options: &Options) -> Result<Option<PathBuf>> {
    if !options.is_replacing() {
        return Ok(None);
    }
    let options = options.clone();
    Swap { options }.finish().map(Some)
}

fn sync(dir: &Path) -> io::Result<()> {
    fs::File::open(dir)?.sync_all()
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn remove_dir(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(files: &[(&str, &str)]) -> (tempfile::TempDir, Options) {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(home.path().join(name), text).unwrap();
        }
        let options = Options::new(home.path());
        (home, options)
    }

    const OLD: [(&str, &str); 4] = [
        ("journal.db", "old"),
        ("journal.db-wal", "old log"),
        ("journal.head", "old head"),
        ("derived.db", "old cache"),
    ];

    fn prepare(options: &Options) -> Swap {
        let swap = Swap::begin(options).unwrap();
        fs::write(swap.work().join("journal.db"), "new").unwrap();
        fs::write(swap.work().join("journal.head"), "new head").unwrap();
        swap
    }

    fn text(path: PathBuf) -> String {
        fs::read_to_string(path).unwrap_or_default()
    }

    fn assert_replaced(options: &Options, kept: &Path) {
        assert_eq!(text(options.journal()), "new");
        assert_eq!(text(options.head()), "new head");
        assert!(!options.journal_log().exists());
        assert!(!options.derived().exists());
        assert_eq!(text(kept.join("journal.db")), "old");
        assert_eq!(text(kept.join("journal.db-wal")), "old log");
        assert_eq!(text(kept.join("journal.head")), "old head");
        assert!(!options.is_replacing());
    }

    #[test]
    fn the_new_files_take_the_place_of_the_old_ones_which_are_kept() {
        let (_home, options) = home(&OLD);
        let kept = prepare(&options).finish().unwrap();
        assert_replaced(&options, &kept);
        // Another repair keeps its files elsewhere.
        fs::write(options.journal_log(), "newer log").unwrap();
        let again = prepare(&options).finish().unwrap();
        assert_ne!(kept, again);
        assert_eq!(text(again.join("journal.db-wal")), "newer log");
    }

    #[test]
    fn a_repair_that_was_cut_off_is_completed_or_begun_again() {
        // Before anything was replaced: the old files are as they were.
        let (_home, options) = home(&OLD);
        drop(prepare(&options));
        assert!(!options.is_replacing());
        assert_eq!(finish_earlier(&options).unwrap(), None);
        assert_eq!(text(options.journal()), "old");
        assert_eq!(text(options.journal_log()), "old log");

        // In the middle, after each of its steps.
        for steps in 0..4 {
            let (_home, options) = home(&OLD);
            let swap = prepare(&options);
            fs::write(options.replacing(), b"").unwrap();
            if steps > 0 {
                fs::remove_file(options.journal_log()).unwrap();
            }
            if steps > 1 {
                fs::remove_file(options.derived()).unwrap();
                fs::rename(swap.work().join("journal.db"), options.journal()).unwrap();
            }
            if steps > 2 {
                fs::rename(swap.work().join("journal.head"), options.head()).unwrap();
            }
            drop(swap);
            assert!(options.is_replacing());
            let refused = crate::SqliteStore::open(options.clone()).map(drop);
            assert!(matches!(refused, Err(Error::RepairUnfinished)));
            let kept = finish_earlier(&options).unwrap().unwrap();
            assert_replaced(&options, &kept);
        }
    }
}
