//! The claim on a task: whoever wins it decides whether the task runs.

use super::folder::{self, Folder, bad, cannot};
use crate::boot::boot_id;
use crate::error::Result;
use crate::failpoint;
use crate::identity::Identity;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, linkat, open};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// It runs.
    Shim,
    /// It never will: it was looked for and had not been started.
    Recovery,
    /// It never will: it was taken back.
    Interrupt,
}

impl By {
    const fn name(self) -> &'static str {
        match self {
            Self::Shim => "shim",
            Self::Recovery => "recovery",
            Self::Interrupt => "interrupt",
        }
    }
}

/// What the file says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    pub by: By,
    #[serde(flatten)]
    pub process: Identity,
    pub boot: String,
    /// When the first process started, in clock ticks; none where that is hidden. A container that
    /// is started again has the same boot, but other processes with the same pids.
    #[serde(default)]
    pub first_ticks: Option<u64>,
}

impl Record {
    fn new(by: By) -> Result<Self> {
        Ok(Self {
            by,
            process: Identity::current()?,
            boot: boot_id()?,
            first_ticks: first_ticks(),
        })
    }

    /// Whether its pids are those of now.
    pub fn is_of_now(&self) -> Result<bool> {
        Ok(self.boot == boot_id()? && self.first_ticks == first_ticks())
    }
}

fn first_ticks() -> Option<u64> {
    Identity::of(1).ok().map(|first| first.start_ticks)
}

/// The claim, won. The lock on it is let go of with this.
#[derive(Debug)]
pub struct Held {
    _file: File,
}

/// None where somebody else has it, or had.
///
/// The file is locked and written before it has its name, so nobody ever sees one that is not.
pub fn take(folder: &Folder, by: By) -> Result<Option<Held>> {
    let path = folder.claim();
    if failpoint::mutant("claim_not_taken") {
        match by {
            By::Shim => late(),
            By::Recovery | By::Interrupt => {
                let file = File::open(folder.path()).map_err(|source| cannot(&path, source))?;
                return Ok(Some(Held { _file: file }));
            }
        }
    }
    let text = serde_json::to_vec(&Record::new(by)?).map_err(|source| bad(&path, source))?;
    failpoint::hit_of("before", "claim", by.name());
    let outcome = match unnamed(folder, &path, &text) {
        // Not every file system has files without a name.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => named(folder, &path, &text),
        outcome => outcome,
    };
    failpoint::hit_of("after", "claim", by.name());
    match outcome {
        Ok(file) => Ok(Some(Held { _file: file })),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(source) => Err(cannot(&path, source)),
    }
}

/// For a mistake of the lab's: only a shim that comes late shows that nobody has the claim.
fn late() {
    // tidy: polls nothing
    std::thread::sleep(std::time::Duration::from_millis(1000));
}

fn unnamed(folder: &Folder, path: &Path, text: &[u8]) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(open(folder.path(), flags, Mode::RUSR | Mode::WUSR)?);
    fill(&file, text)?;
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, link, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
    Ok(file)
}

fn named(folder: &Folder, path: &Path, text: &[u8]) -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!(".claim-{}-{number}", std::process::id());
    let own = folder.path().join(name);
    let file = folder::create(&own)?;
    let outcome = fill(&file, text).and_then(|()| fs::hard_link(&own, path));
    let removed = fs::remove_file(&own);
    outcome?;
    removed?;
    Ok(file)
}

fn fill(mut file: &File, text: &[u8]) -> io::Result<()> {
    flock(file, FlockOperation::NonBlockingLockExclusive)?;
    file.write_all(text)
}

/// What the claim says, and whether the one who won it still has it. None where it is not there, or
/// says nothing: the system went down before that was kept.
pub fn look(folder: &Folder) -> Result<Option<(Record, IsHeld)>> {
    let path = folder.claim();
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(cannot(&path, source)),
    };
    let mut text = Vec::new();
    file.read_to_end(&mut text)
        .map_err(|source| cannot(&path, source))?;
    if text.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let record = folder::parse(&path, &text)?;
    let held = match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => IsHeld::No,
        Err(Errno::WOULDBLOCK) => IsHeld::Yes,
        Err(errno) => return Err(cannot(&path, errno)),
    };
    Ok(Some((record, held)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsHeld {
    Yes,
    No,
}

#[cfg(test)]
mod tests {
    use super::{By, Folder, IsHeld, look, named, take};
    use std::sync::Barrier;

    #[test]
    fn the_first_one_has_it_and_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::make(dir.path()).unwrap();
        assert!(look(&folder).unwrap().is_none());
        let held = take(&folder, By::Shim).unwrap().unwrap();
        assert!(take(&folder, By::Interrupt).unwrap().is_none());
        let (record, is_held) = look(&folder).unwrap().unwrap();
        assert_eq!((record.by, is_held), (By::Shim, IsHeld::Yes));
        drop(held);
        assert!(take(&folder, By::Recovery).unwrap().is_none());
        let (record, is_held) = look(&folder).unwrap().unwrap();
        assert_eq!((record.by, is_held), (By::Shim, IsHeld::No));
    }

    #[test]
    fn of_many_at_once_one_has_it() {
        for _ in 0..200 {
            let dir = tempfile::tempdir().unwrap();
            let folder = Folder::make(dir.path()).unwrap();
            let ready = Barrier::new(4);
            let one = |by| {
                ready.wait();
                let held = take(&folder, by).unwrap();
                let (seen, is_held) = look(&folder).unwrap().unwrap();
                assert!(held.is_none() || is_held == IsHeld::Yes);
                (held.is_some().then_some(by), seen.by)
            };
            let one = &one;
            let won = std::thread::scope(|scope| {
                let by = [By::Shim, By::Recovery, By::Interrupt, By::Recovery];
                let threads = by.map(|by| scope.spawn(move || one(by)));
                threads.map(|thread| thread.join().unwrap())
            });
            let winners: Vec<By> = won.iter().filter_map(|(by, _)| *by).collect();
            assert_eq!(winners.len(), 1);
            assert!(won.iter().all(|(_, seen)| *seen == winners[0]));
        }
    }

    #[test]
    fn it_works_without_files_that_have_no_name() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::make(dir.path()).unwrap();
        let held = named(&folder, &folder.claim(), b"{}").unwrap();
        let again = named(&folder, &folder.claim(), b"{}").unwrap_err();
        assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists);
        let names = std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(names, 1, "nothing else is left behind");
        drop(held);
    }
}
