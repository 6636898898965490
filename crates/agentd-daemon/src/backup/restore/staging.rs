//! Where a restored home is built before it is one.
//!
//! A home that does not exist yet is built beside its name, and renamed as a whole. A directory that exists may be a mount point,
//! or in a directory that this user cannot write: there the home is built in a directory inside it, whose entries are then
//! moved up one by one. That directory marks the home as unfinished: no daemon starts in it, and the next restore deletes what
//! the interrupted one has moved, and begins again.

use crate::backup::{Error, Result};
use crate::clock;
use crate::durable_file;
use crate::layout::{self, Layout};
use agentd_failpoint as failpoint;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

/// In the directory inside the home: the new home, the lock of the restore, and the names of what is moved.
const BUILT: &str = "home";
const LOCK: &str = "lock";
const MOVES: &str = "moves.json";
/// The name of that directory once the home is complete.
const DONE: &str = ".agentd-restored";
/// Moved last.
const JOURNAL: &str = "journal.db";
/// File systems have it in their root directory.
const LOST_AND_FOUND: &str = "lost+found";

/// The directory in which the home is built. It is deleted unless it became the home.
#[derive(Debug)]
pub struct Staging {
    home: PathBuf,
    dir: PathBuf,
    location: Location,
    is_home: bool,
}

#[derive(Debug)]
enum Location {
    Beside,
    Inside {
        /// Held for as long as this process restores.
        _lock: File,
    },
}

impl Staging {
    /// The home must not exist, or be an empty directory.
    pub fn create(home: &Path) -> Result<Self> {
        let about = match fs::symlink_metadata(home) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::beside(home),
            about => about.map_err(Error::io(home))?,
        };
        let kind = about.file_type();
        if kind.is_dir() {
            return Self::inside(home);
        }
        let what = match kind.is_symlink() {
            true => "a symbolic link",
            false => "a file",
        };
        Err(Error::HomeNotADirectory {
            home: home.to_owned(),
            what,
        })
    }

    fn beside(home: &Path) -> Result<Self> {
        let parent = home.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(parent).map_err(Error::io(parent))?;
        let dir = parent.join(format!(".agentd-restore-{}", clock::new_id()));
        let made = DirBuilder::new().mode(0o700).create(&dir);
        made.map_err(Error::io(&dir))?;
        Ok(Self {
            home: home.to_owned(),
            dir,
            location: Location::Beside,
            is_home: false,
        })
    }

    fn inside(home: &Path) -> Result<Self> {
        let mark = mark(home);
        if fs::symlink_metadata(&mark).is_ok_and(|about| about.is_dir()) {
            let _lock = lock(home)?;
            remove_unfinished(home).map_err(Error::io(&mark))?;
        }
        check_empty(home)?;
        layout::keep_private(home).map_err(Error::io(home))?;
        let made = DirBuilder::new().mode(0o700).create(&mark);
        made.map_err(Error::io(&mark))?;
        let lock = lock(home).inspect_err(|error| remove_unlocked(&mark, error))?;
        let staging = Self {
            home: home.to_owned(),
            dir: mark.join(BUILT),
            location: Location::Inside { _lock: lock },
            is_home: false,
        };
        // A daemon that has not seen the mark may have started since.
        check_empty(home)?;
        let made = DirBuilder::new().mode(0o700).create(&staging.dir);
        made.map_err(Error::io(&staging.dir))?;
        Ok(staging)
    }

    /// The home, while it is built.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory that will be the home: this one, which is renamed, or the one that its content is moved to.
    pub fn final_dir(&self) -> &Path {
        match self.location {
            Location::Beside => &self.dir,
            Location::Inside { .. } => &self.home,
        }
    }

    /// Called when everything is on disk. Fails if the home is not empty by now.
    pub fn become_home(&mut self) -> Result<()> {
        match self.location {
            Location::Beside => {
                let renamed = fs::rename(&self.dir, &self.home);
                renamed.map_err(|error| taken_or(&self.home, error))?;
                self.is_home = true;
                sync(self.home.parent().unwrap_or(Path::new("/")))
            }
            Location::Inside { .. } => {
                self.move_up()?;
                failpoint::hit("after", "restore-backup-moves");
                let done = self.home.join(DONE);
                // From here on it is a home.
                fs::rename(mark(&self.home), &done).map_err(Error::io(&self.home))?;
                self.is_home = true;
                sync(&self.home)?;
                let _left = fs::remove_dir_all(&done);
                Ok(())
            }
        }
    }

    fn move_up(&self) -> Result<()> {
        let mut names = names_in(&self.dir).map_err(Error::io(&self.dir))?;
        names.sort_by_key(|name| name == JOURNAL);
        let mark = mark(&self.home);
        write_moves(&mark, &names).map_err(Error::io(&mark))?;
        for name in &names {
            let to = self.home.join(name);
            let moved = rename_new(&self.dir.join(name), &to);
            moved.map_err(|error| taken_or(&self.home, error))?;
            failpoint::hit("in", "restore-backup-moves");
        }
        sync(&self.home)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.is_home {
            return;
        }
        let _left = match self.location {
            Location::Beside => fs::remove_dir_all(&self.dir),
            Location::Inside { .. } => remove_unfinished(&self.home),
        };
    }
}

fn mark(home: &Path) -> PathBuf {
    Layout::new(home).unfinished_restore()
}

/// The lock of the restore into a home that exists.
fn lock(home: &Path) -> Result<File> {
    let path = mark(home).join(LOCK);
    layout::hold(&path).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Error::HomeBusy {
            home: home.to_owned(),
        },
        _ => Error::io(path)(error),
    })
}

/// A mark that could not be locked, for instance because the disk is full, would keep every daemon out of the directory. It is
/// removed, unless another restore has the lock, and with it the mark.
fn remove_unlocked(mark: &Path, error: &Error) {
    if !matches!(error, Error::HomeBusy { .. }) {
        // It may have been created before it could not be locked.
        let _none = fs::remove_file(mark.join(LOCK));
        let _left = fs::remove_dir(mark);
    }
}

/// A home with anything in it is left alone.
fn check_empty(home: &Path) -> Result<()> {
    let mark = mark(home);
    for entry in fs::read_dir(home).map_err(Error::io(home))? {
        let entry = entry.map_err(Error::io(home))?;
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let is_passed_over = entry.path() == mark || entry.file_name() == LOST_AND_FOUND;
        if !is_dir || !is_passed_over {
            return Err(Error::HomeNotEmpty {
                home: home.to_owned(),
            });
        }
    }
    Ok(())
}

fn taken_or(home: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => Error::HomeNotEmpty {
            home: home.to_owned(),
        },
        _ => Error::io(home)(error),
    }
}

fn sync(dir: &Path) -> Result<()> {
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(Error::io(dir))
}

/// All names that agentd gives in a home are text.
fn names_in(dir: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(dir)?;
    let names = entries.map(|entry| {
        let name = entry?.file_name().into_string();
        name.map_err(|_| io::Error::from(io::ErrorKind::InvalidFilename))
    });
    names.collect()
}

/// Records what is going to be moved. It is on disk when this returns.
fn write_moves(mark: &Path, names: &[String]) -> io::Result<()> {
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(mark.join(MOVES))?;
    file.write_all(&serde_json::to_vec(names)?)?;
    file.sync_all()?;
    File::open(mark)?.sync_all()
}

/// Renames, unless the new name is taken.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system has no such rename.
        Err(Errno::INVAL | Errno::NOSYS) if fs::symlink_metadata(to).is_err() => {
            fs::rename(from, to)
        }
        Err(Errno::INVAL | Errno::NOSYS) => Err(io::ErrorKind::AlreadyExists.into()),
        renamed => Ok(renamed?),
    }
}

/// Deletes what a restore that did not complete has left: what it has moved, and then its directory. The home was empty when the
/// restore began; what is in it besides is not touched.
fn remove_unfinished(home: &Path) -> io::Result<()> {
    let mark = mark(home);
    let moves = durable_file::read::<Vec<String>>(&mark.join(MOVES));
    // A list that was not written completely: nothing was moved.
    for name in moves.ok().flatten().unwrap_or_default() {
        let is_moved = fs::symlink_metadata(mark.join(BUILT).join(&name)).is_err();
        if is_name(&name) && is_moved {
            remove(&home.join(&name))?;
        }
    }
    // Without the list, a repeated clean-up does not take names that are missing in the directory for moved ones.
    remove(&mark.join(MOVES))?;
    fs::remove_dir_all(&mark)
}

fn is_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    parts.next() == Some(Component::Normal(OsStr::new(name))) && parts.next().is_none()
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(about) if about.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests;
