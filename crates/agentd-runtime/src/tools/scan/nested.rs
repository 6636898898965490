//! Repositories inside the work tree that are not a part of it. Git does not tell what changed in them: only whether
//! something did is looked for.

use super::look::is_since;
use agentd_core::time::Timestamp;
use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How many files and directories of all such repositories are looked at, and for how long.
const MOST: usize = 20_000;
const TIME: Duration = Duration::from_millis(100);
/// After how many of them the time is checked: on a loaded machine, a small repository is still looked at completely.
const CLOCK_EVERY: usize = 256;

/// Looks into repositories of a work tree.
pub(super) struct Nested {
    since: Timestamp,
    /// Paths that tools or earlier commands left. Each is compared with how it was left.
    known: BTreeSet<PathBuf>,
    /// How many may still be looked at, and until when.
    most: usize,
    until: Instant,
}

impl Nested {
    pub fn new(since: Timestamp, known: BTreeSet<PathBuf>) -> Self {
        Self {
            since,
            known,
            most: MOST,
            until: Instant::now() + TIME,
        }
    }

    /// Whether something in a repository was changed, or may have been: there is more in it than is looked at. What git
    /// keeps of it does not count.
    pub fn may_be_changed(&mut self, repository: &Path) -> bool {
        let Ok(top) = fs::symlink_metadata(repository) else {
            return false;
        };
        if self.is_changed(repository, &top) {
            return true;
        }
        let mut dirs = vec![repository.to_owned()];
        while let Some(dir) = dirs.pop() {
            // What cannot be listed here, commands cannot change either.
            let Ok(entries) = fs::read_dir(&dir) else {
                continue;
            };
            for entry in entries.flatten().filter(|it| it.file_name() != ".git") {
                if self.is_exhausted() {
                    return true;
                }
                self.most -= 1;
                // Not that of a link's target.
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                let path = entry.path();
                if self.is_changed(&path, &metadata) {
                    return true;
                }
                if metadata.is_dir() {
                    dirs.push(path);
                }
            }
        }
        false
    }

    /// Whether no more may be looked at.
    fn is_exhausted(&self) -> bool {
        let looked_at = MOST - self.most;
        let is_clock_due = looked_at > 0 && looked_at.is_multiple_of(CLOCK_EVERY);
        self.most == 0 || (is_clock_due && Instant::now() >= self.until)
    }

    /// A tool that replaces a file changes the directory too. The directory counts nevertheless: a command may have deleted
    /// another file of it before, and its ctime tells only the last change.
    fn is_changed(&self, path: &Path, metadata: &Metadata) -> bool {
        !self.known.contains(path) && is_since(metadata, self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with one file, which is in a directory.
    fn repository() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(".git")).unwrap();
        fs::create_dir_all(root.path().join("src")).unwrap();
        fs::write(root.path().join("src/a"), "").unwrap();
        root
    }

    #[test]
    fn a_repository_of_which_too_much_is_not_looked_at_may_be_changed() {
        let root = repository();
        // Nothing was changed in the future.
        let since = Timestamp::from_millis(i64::MAX);
        let mut nested = Nested::new(since, BTreeSet::new());
        nested.until += Duration::from_secs(3600);
        assert!(!nested.may_be_changed(root.path()));
        assert!(!nested.may_be_changed(&root.path().join("none")));
        assert_eq!(nested.most, MOST - 2);
        nested.most = 1;
        assert!(nested.may_be_changed(root.path()));
    }

    #[test]
    fn the_time_does_not_matter_for_a_small_repository() {
        let root = repository();
        let since = Timestamp::from_millis(i64::MAX);
        let mut late = Nested::new(since, BTreeSet::new());
        late.until = Instant::now();
        assert!(!late.may_be_changed(root.path()));
        late.most = MOST - CLOCK_EVERY;
        assert!(late.may_be_changed(root.path()));
    }

    /// The file is compared with how it was left. Of the directory only the last change is known.
    #[test]
    fn a_file_that_a_tool_wrote_does_not_count_and_its_directory_does() {
        let root = repository();
        let (dir, file) = (root.path().join("src"), root.path().join("src/a"));
        let [of_dir, of_file] = [&dir, &file].map(|path| fs::symlink_metadata(path).unwrap());
        let is_changed = |known: &[&PathBuf]| {
            let known = known.iter().map(|path| (*path).clone());
            let nested = Nested::new(Timestamp::default(), known.collect());
            let dir = nested.is_changed(&dir, &of_dir);
            (dir, nested.is_changed(&file, &of_file))
        };
        assert_eq!(is_changed(&[]), (true, true));
        assert_eq!(is_changed(&[&file]), (true, false));
    }
}
