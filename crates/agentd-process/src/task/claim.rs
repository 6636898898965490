//! The claim on a task: the process that wins it decides whether the task runs.

use super::task_dir::{self, TaskDir, cannot};
use crate::boot::boot_id;
use crate::error::Result;
use crate::identity::Identity;
use agentd_failpoint as failpoint;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, fstat, linkat, open};
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
    /// The task runs.
    Shim,
    /// The task never runs: recovery looked for it before it was started.
    Recovery,
    /// The task never runs: it was withdrawn.
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

/// The content of the claim file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    pub by: By,
    #[serde(flatten)]
    pub process: Identity,
    pub boot: String,
    /// The start time of PID 1, in clock ticks; `None` if that is hidden. A restarted container has the same boot id,
    /// but other processes with the same pids.
    #[serde(default)]
    pub first_ticks: Option<u64>,
    /// The device and inode of this file. In a copy of the file they differ: the processes that it names do not belong
    /// to the copy. `None` in claims of earlier versions.
    #[serde(default)]
    pub file: Option<FileId>,
}

/// The identity of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(file: &File) -> io::Result<Self> {
        let stat = fstat(file)?;
        Ok(Self {
            device: stat.st_dev,
            inode: stat.st_ino,
        })
    }
}

impl Record {
    fn new(by: By) -> Result<Self> {
        Ok(Self {
            by,
            process: Identity::current()?,
            boot: boot_id()?,
            first_ticks: first_ticks(),
            file: None,
        })
    }

    /// Whether its pids are from the current boot and container.
    pub fn is_of_now(&self) -> Result<bool> {
        Ok(self.boot == boot_id()? && self.first_ticks == first_ticks())
    }
}

fn first_ticks() -> Option<u64> {
    Identity::of(1).ok().map(|first| first.start_ticks)
}

/// A claim that this process has won. Dropping it releases the lock.
#[derive(Debug)]
pub struct Held {
    _file: File,
}

/// Takes the claim. `None` if another process has it, or had it.
///
/// The file is locked and written before it gets its name, so no process ever sees an unlocked or empty claim.
pub fn take(task_dir: &TaskDir, by: By) -> Result<Option<Held>> {
    let path = task_dir.claim();
    if failpoint::injected_bug("claim_not_taken") {
        match by {
            By::Shim => late(),
            By::Recovery | By::Interrupt => {
                let file = File::open(task_dir.path()).map_err(|source| cannot(&path, source))?;
                return Ok(Some(Held { _file: file }));
            }
        }
    }
    let record = Record::new(by)?;
    failpoint::hit_of("before", "claim", by.name());
    let outcome = match unnamed(task_dir, &path, &record) {
        // Not every file system supports unnamed files.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            named(task_dir, &path, &record)
        }
        outcome => outcome,
    };
    failpoint::hit_of("after", "claim", by.name());
    match outcome {
        Ok(file) => Ok(Some(Held { _file: file })),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(source) => Err(cannot(&path, source)),
    }
}

/// For an injected bug: delays the shim until recovery has reported that the task never started.
fn late() {
    // tidy: polls nothing
    std::thread::sleep(std::time::Duration::from_millis(1000));
}

fn unnamed(task_dir: &TaskDir, path: &Path, record: &Record) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(open(task_dir.path(), flags, Mode::RUSR | Mode::WUSR)?);
    fill(&file, record)?;
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, link, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
    Ok(file)
}

fn named(task_dir: &TaskDir, path: &Path, record: &Record) -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!(".claim-{}-{number}", std::process::id());
    let own = task_dir.path().join(name);
    let file = task_dir::create(&own)?;
    let outcome = fill(&file, record).and_then(|()| fs::hard_link(&own, path));
    let removed = fs::remove_file(&own);
    outcome?;
    removed?;
    Ok(file)
}

fn fill(mut file: &File, record: &Record) -> io::Result<()> {
    flock(file, FlockOperation::NonBlockingLockExclusive)?;
    let record = Record {
        file: Some(FileId::of(file)?),
        ..record.clone()
    };
    file.write_all(&serde_json::to_vec(&record)?)
}

/// An existing claim.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub record: Record,
    /// Whether the process that won it still holds the lock.
    pub held: IsHeld,
    /// Whether the file is the original claim.
    pub origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Original,
    /// The file was copied, or an earlier version of agentd wrote it.
    Copy,
}

/// Reads the claim. `None` if it does not exist or is empty: the machine crashed before its content was on disk.
pub fn look(task_dir: &TaskDir) -> Result<Option<Claimed>> {
    let path = task_dir.claim();
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
    let record: Record = task_dir::parse(&path, &text)?;
    let own = FileId::of(&file).map_err(|source| cannot(&path, source))?;
    let origin = match record.file == Some(own) {
        true => Origin::Original,
        false => Origin::Copy,
    };
    let held = match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => IsHeld::No,
        Err(Errno::WOULDBLOCK) => IsHeld::Yes,
        Err(errno) => return Err(cannot(&path, errno)),
    };
    Ok(Some(Claimed {
        record,
        held,
        origin,
    }))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsHeld {
    Yes,
    No,
}

#[cfg(test)]
mod tests {
    use super::{By, IsHeld, Origin, Record, TaskDir, look, named, take};
    use std::sync::Barrier;

    #[test]
    fn the_first_one_has_it_and_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let task_dir = TaskDir::make(dir.path()).unwrap();
        assert!(look(&task_dir).unwrap().is_none());
        let held = take(&task_dir, By::Shim).unwrap().unwrap();
        assert!(take(&task_dir, By::Interrupt).unwrap().is_none());
        let seen = look(&task_dir).unwrap().unwrap();
        assert_eq!((seen.record.by, seen.held), (By::Shim, IsHeld::Yes));
        drop(held);
        assert!(take(&task_dir, By::Recovery).unwrap().is_none());
        let seen = look(&task_dir).unwrap().unwrap();
        assert_eq!((seen.record.by, seen.held), (By::Shim, IsHeld::No));
        assert_eq!(seen.origin, Origin::Original);
    }

    #[test]
    fn a_copy_is_told_from_the_file_that_was_claimed() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let task_dir = TaskDir::make(one.path()).unwrap();
        let copy = TaskDir::make(other.path()).unwrap();
        let held = take(&task_dir, By::Shim).unwrap();
        std::fs::copy(task_dir.claim(), copy.claim()).unwrap();
        let seen = look(&copy).unwrap().unwrap();
        assert_eq!((seen.held, seen.origin), (IsHeld::No, Origin::Copy));
        drop(held);
    }

    #[test]
    fn of_many_at_once_one_has_it() {
        for _ in 0..200 {
            let dir = tempfile::tempdir().unwrap();
            let task_dir = TaskDir::make(dir.path()).unwrap();
            let ready = Barrier::new(4);
            let one = |by| {
                ready.wait();
                let held = take(&task_dir, by).unwrap();
                let seen = look(&task_dir).unwrap().unwrap();
                assert!(held.is_none() || seen.held == IsHeld::Yes);
                (held.is_some().then_some(by), seen.record.by)
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
        let task_dir = TaskDir::make(dir.path()).unwrap();
        let record = Record::new(By::Shim).unwrap();
        let held = named(&task_dir, &task_dir.claim(), &record).unwrap();
        let again = named(&task_dir, &task_dir.claim(), &record).unwrap_err();
        assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists);
        let names = std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(names, 1, "nothing else is left behind");
        drop(held);
    }
}
