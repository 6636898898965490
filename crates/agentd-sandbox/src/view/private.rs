//! What only root can read in `/etc` and `/opt`, by the modes of the files. Root without capabilities is still their owner.

use super::User;
use crate::policy::Policy;
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The directories, and how deep they are searched. Programs in `/opt` have their settings near the top, and many files
/// below.
const SEARCHED: &[(&str, usize)] = &[("/etc", 12), ("/opt", 3)];

/// Every program needs them, and a strict umask may have closed them.
const NEEDED: &[&str] = &[
    "/etc/alternatives",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/resolv.conf",
    "/etc/ssl/certs",
];

/// Directories that have not been searched by then are closed.
const MOST_ENTRIES: usize = 20_000;
/// A directory with more closed files than this is closed as a whole: each takes a mount.
const MOST_IN_ONE: usize = 32;
/// A change of a file's mode shows in no directory, so the search is repeated after this time.
const FRESH: Duration = Duration::from_secs(30);

/// What is closed to root in directories of the system because others cannot read it; none for another user. A process that
/// starts many sandboxes remembers it.
pub fn private_paths() -> Option<Vec<PathBuf>> {
    (User::current() == User::Root).then(paths)
}

/// What a policy closes for root.
pub fn closed_by(policy: &Policy) -> Vec<PathBuf> {
    let private = policy.private.clone().unwrap_or_else(paths);
    // A tree that the policy gives is the user's own work, whatever its modes are.
    let is_given = |path: &Path| {
        let mut given = policy.readable.iter().chain(&policy.writable);
        given.any(|given| path.starts_with(given) || given.starts_with(path))
    };
    let private = private.iter().filter(|path| !is_given(path));
    private.flat_map(fs::canonicalize).collect()
}

/// What others than root cannot read. A search of `/etc` takes milliseconds, so the last one is used again while none of
/// its directories has changed.
fn paths() -> Vec<PathBuf> {
    static LAST: Mutex<Option<Search>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(search) = last.as_ref().filter(|search| search.is_fresh()) {
        return search.found.clone();
    }
    let search = Search::of(SEARCHED.iter().map(|(dir, depth)| (Path::new(dir), *depth)));
    let found = search.found.clone();
    *last = Some(search);
    found
}

struct Search {
    found: Vec<PathBuf>,
    /// The directories that were listed, with the time of their last change.
    listed: HashMap<PathBuf, (i64, i64)>,
    entries: usize,
    at: Instant,
}

impl Search {
    fn of<'a>(dirs: impl Iterator<Item = (&'a Path, usize)>) -> Self {
        let mut search = Self {
            found: Vec::new(),
            listed: HashMap::new(),
            entries: 0,
            at: Instant::now(),
        };
        for (dir, depth) in dirs {
            if let Ok(about) = fs::symlink_metadata(dir)
                && about.is_dir()
            {
                search.list(dir, &about, depth);
            }
        }
        search
    }

    fn is_fresh(&self) -> bool {
        let is_same = |(dir, changed): (&PathBuf, &(i64, i64))| {
            fs::symlink_metadata(dir).is_ok_and(|now| changed_at(&now) == *changed)
        };
        self.at.elapsed() < FRESH && self.listed.iter().all(is_same)
    }

    fn list(&mut self, dir: &Path, about: &Metadata, depth: usize) {
        // Before it is read: a change meanwhile counts as one after it.
        self.listed.insert(dir.to_owned(), changed_at(about));
        let Ok(entries) = fs::read_dir(dir) else {
            return;
        };
        let mut closed = Vec::new();
        let mut inner = Vec::new();
        for entry in entries.flatten() {
            self.entries += 1;
            let path = entry.path();
            let Ok(about) = entry.metadata() else {
                continue;
            };
            if about.is_symlink() || NEEDED.iter().any(|needed| path == Path::new(needed)) {
                continue;
            }
            if is_closed_to_others(&about) {
                closed.push(path);
            } else if about.is_dir() {
                inner.push((path, about));
            }
        }
        match closed.len() > MOST_IN_ONE && !SEARCHED.iter().any(|(top, _)| dir == Path::new(top)) {
            true => {
                self.found.push(dir.to_owned());
                return;
            }
            false => self.found.append(&mut closed),
        }
        let Some(depth) = depth.checked_sub(1).filter(|depth| *depth > 0) else {
            return;
        };
        for (path, about) in inner {
            match self.entries < MOST_ENTRIES {
                true => self.list(&path, &about, depth),
                false => self.found.push(path),
            }
        }
    }
}

fn changed_at(about: &Metadata) -> (i64, i64) {
    (about.ctime(), about.ctime_nsec())
}

/// Others cannot read the file, or reach anything in the directory.
fn is_closed_to_others(about: &Metadata) -> bool {
    let needed = if about.is_dir() { 0o001 } else { 0o004 };
    about.mode() & needed == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn make(path: &Path, mode: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_cannot_read_is_found_to_the_given_depth() {
        let dir = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(dir.path()).unwrap();
        make(&top.join("open"), 0o644);
        make(&top.join("closed"), 0o640);
        make(&top.join("a/b/closed"), 0o600);
        make(&top.join("a/b/c/deep"), 0o600);
        make(&top.join("shut/open"), 0o644);
        let shut = fs::Permissions::from_mode(0o750);
        fs::set_permissions(top.join("shut"), shut).unwrap();
        // Others can open what is in it by its name.
        make(&top.join("unlisted/open"), 0o644);
        make(&top.join("unlisted/closed"), 0o400);
        let unlisted = fs::Permissions::from_mode(0o711);
        fs::set_permissions(top.join("unlisted"), unlisted).unwrap();
        symlink(top.join("closed"), top.join("link")).unwrap();
        let search = |depth| {
            let mut found = Search::of([(top.as_path(), depth)].into_iter()).found;
            found.sort();
            let found = found.iter().map(|path| path.strip_prefix(&top).unwrap());
            found
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(search(3), "a/b/closed closed shut unlisted/closed");
        assert_eq!(
            search(9),
            "a/b/c/deep a/b/closed closed shut unlisted/closed"
        );
    }

    #[test]
    fn a_directory_with_many_closed_files_is_closed_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(dir.path()).unwrap();
        for n in 0..=MOST_IN_ONE {
            make(&top.join(format!("keys/{n}")), 0o600);
        }
        let search = Search::of([(top.as_path(), 3)].into_iter());
        assert_eq!(search.found, [top.join("keys")]);
    }

    #[test]
    fn a_search_is_repeated_when_a_directory_changes() {
        let dir = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(dir.path()).unwrap();
        make(&top.join("a/open"), 0o644);
        let search = Search::of([(top.as_path(), 3)].into_iter());
        assert!(search.is_fresh());
        make(&top.join("a/new"), 0o600);
        assert!(!search.is_fresh());
    }
}
