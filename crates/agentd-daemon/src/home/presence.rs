//! Whether a state directory is still the one that was opened. A daemon whose directory was deleted still has the files
//! open, and would write to files that no other process can open.

use crate::layout::Layout;
use rustix::fs::stat;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// A file by device and inode, because a path may name another file later.
type FileId = (u64, u64);

#[derive(Debug)]
pub struct Presence {
    /// The directory itself, and the journal in it: a deletion may begin with either.
    files: [(PathBuf, FileId); 2],
}

impl Presence {
    /// The present files. Both must exist.
    pub fn of(layout: &Layout) -> io::Result<Self> {
        let known = |path: PathBuf| -> io::Result<(PathBuf, FileId)> {
            let id = id_of(&path)?;
            Ok((path, id))
        };
        let home = known(layout.home().to_owned())?;
        let journal = known(layout.home().join("journal.db"))?;
        Ok(Self {
            files: [home, journal],
        })
    }

    /// Only "not found" counts as missing: another error does not show whether the file exists.
    pub fn holds(&self) -> bool {
        self.files.iter().all(|(path, known)| match id_of(path) {
            Ok(now) => now == *known,
            Err(Errno::NOENT | Errno::NOTDIR) => false,
            Err(_) => true,
        })
    }
}

fn id_of(path: &Path) -> Result<FileId, Errno> {
    let stat = stat(path)?;
    Ok((stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use super::Presence;
    use crate::layout::Layout;
    use std::fs;

    #[test]
    fn a_directory_that_is_gone_or_another_one_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        let (home, elsewhere) = (root.path().join("home"), root.path().join("elsewhere"));
        let make = || {
            fs::create_dir(&home).unwrap();
            fs::write(home.join("journal.db"), "").unwrap();
        };
        make();
        let presence = Presence::of(&Layout::new(&home)).unwrap();
        assert!(presence.holds());
        fs::rename(&home, &elsewhere).unwrap();
        assert!(!presence.holds());
        make();
        assert!(!presence.holds(), "another one is in its place");
        fs::remove_dir_all(&home).unwrap();
        fs::rename(&elsewhere, &home).unwrap();
        assert!(presence.holds());
        fs::remove_file(home.join("journal.db")).unwrap();
        assert!(!presence.holds());
    }
}
