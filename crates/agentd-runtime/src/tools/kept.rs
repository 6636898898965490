//! One quota for all output that is kept of an agent. When it is used up, the oldest output is removed first.
//!
//! The part of an output that the model was shown is in the journal, and is not removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// A command may always write this much: its result is read from the file.
const LEAST: u64 = 64 * 1024;
/// A younger output is not removed: it may not have been read yet.
const FRESH: Duration = Duration::from_secs(60);

pub(super) struct Kept {
    /// The agent's directory, with `outputs` and `tasks` in it.
    state: PathBuf,
    quota: u64,
    /// An upper bound of the bytes in use; `None` until the directories have been read.
    known: Mutex<Option<u64>>,
}

struct Output {
    path: PathBuf,
    bytes: u64,
    changed: SystemTime,
    may_go: bool,
}

impl Kept {
    pub const fn new(state: PathBuf, quota: u64) -> Self {
        Self {
            state,
            quota,
            known: Mutex::new(None),
        }
    }

    /// Makes room for `wanted` bytes, and returns how many may be written.
    pub fn allow(&self, wanted: u64) -> u64 {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |known: u64| known.saturating_add(wanted) > self.quota;
        let there = match *known {
            Some(there) if !is_full(there) => there,
            _ => self.make_room(is_full),
        };
        let left = self.quota.saturating_sub(there);
        let allowed = wanted.min(left.max(LEAST));
        *known = Some(there.saturating_add(allowed));
        allowed
    }

    /// Removes the oldest outputs while the quota is exceeded, and returns the bytes that are left.
    fn make_room(&self, is_full: impl Fn(u64) -> bool) -> u64 {
        let mut all = outputs(&self.state.join("outputs"));
        all.extend(tasks(&self.state.join("tasks")));
        all.sort_by_key(|output| output.changed);
        let mut there = all.iter().map(|output| output.bytes).sum();
        let now = SystemTime::now();
        for output in all {
            if !is_full(there) {
                break;
            }
            let age = now.duration_since(output.changed).unwrap_or_default();
            if output.may_go && age >= FRESH && fs::remove_file(&output.path).is_ok() {
                tracing::info!(path = %output.path.display(), bytes = output.bytes, "kept output removed: over the quota");
                there -= output.bytes;
            }
        }
        there
    }
}

fn outputs(dir: &Path) -> Vec<Output> {
    entries(dir)
        .into_iter()
        .filter_map(|path| output(path, true))
        .collect()
}

/// The outputs of commands. The output of a running command is not removed.
fn tasks(dir: &Path) -> Vec<Output> {
    let tasks = entries(dir).into_iter();
    tasks
        .flat_map(|task| {
            let has_ended = task.join("exit").exists();
            ["output", "errors"].map(|name| output(task.join(name), has_ended))
        })
        .flatten()
        .collect()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn output(path: PathBuf, may_go: bool) -> Option<Output> {
    let metadata = fs::symlink_metadata(&path).ok()?;
    metadata.is_file().then_some(Output {
        bytes: metadata.len(),
        changed: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
        may_go,
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    const KIB: u64 = 1024;

    /// Writes a file of this size in KiB, with a time of this many minutes ago.
    fn write(path: &Path, kib: u64, minutes: u64) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, vec![b'x'; usize::try_from(kib * KIB).unwrap()]).unwrap();
        let then = SystemTime::now() - Duration::from_secs(60 * minutes);
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(then)
            .unwrap();
    }

    #[test]
    fn the_oldest_goes_first_and_what_runs_or_is_fresh_stays() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        write(&at("tasks/ended/output"), 200, 50);
        fs::write(at("tasks/ended/exit"), "{}").unwrap();
        write(&at("tasks/running/output"), 200, 60);
        write(&at("outputs/old.txt"), 200, 40);
        write(&at("outputs/new.txt"), 200, 30);
        write(&at("outputs/fresh.txt"), 200, 0);
        let kept = Kept::new(dir.path().to_owned(), 1000 * KIB);
        assert_eq!(kept.allow(350 * KIB), 350 * KIB);
        let there = |name: &str| at(name).exists();
        assert!(!there("tasks/ended/output") && !there("outputs/old.txt"));
        assert!(there("tasks/ended/exit") && there("tasks/running/output"));
        assert!(there("outputs/new.txt") && there("outputs/fresh.txt"));
        // What it allowed counts as used.
        assert_eq!(kept.allow(500 * KIB), 500 * KIB, "by removing another one");
        assert!(!there("outputs/new.txt"));
        assert_eq!(kept.allow(5000 * KIB), 600 * KIB, "what is left");
        assert!(there("tasks/running/output") && there("outputs/fresh.txt"));
    }

    #[test]
    fn a_command_may_always_write_a_little() {
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("tasks/running/output"), 300, 10);
        let kept = Kept::new(dir.path().to_owned(), 100 * KIB);
        assert_eq!(kept.allow(10 * KIB * KIB), LEAST);
        assert_eq!(kept.allow(100), 100, "and no more than it wants");
        let nothing_there = Kept::new(dir.path().join("none"), KIB * KIB);
        assert_eq!(nothing_there.allow(500 * KIB), 500 * KIB);
    }
}
