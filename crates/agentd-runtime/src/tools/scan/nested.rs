//! Repositories inside the work tree that are not a part of it. Git does not tell what changed in them: only whether
//! something did is looked for.

use super::look::{changed_at, is_since};
use crate::tools::spans::COARSE_MS;
use agentd_core::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How many files and directories of all such repositories are looked at, and for how long.
const MOST: usize = 20_000;
const TIME: Duration = Duration::from_millis(100);

/// Looks into repositories of a work tree.
pub(super) struct Nested {
    since: Timestamp,
    /// Paths that tools or earlier commands left. Each is compared with how it was left.
    known: BTreeSet<PathBuf>,
    /// When the last of them was changed in each directory.
    known_in: BTreeMap<PathBuf, i64>,
    /// How many may still be looked at, and until when.
    most: usize,
    until: Instant,
}

impl Nested {
    pub fn new(since: Timestamp, known: BTreeSet<PathBuf>) -> Self {
        let mut known_in: BTreeMap<PathBuf, i64> = BTreeMap::new();
        for path in &known {
            if let (Some(dir), Ok(metadata)) = (path.parent(), fs::symlink_metadata(path)) {
                let newest = known_in.entry(dir.to_owned()).or_insert(i64::MIN);
                *newest = changed_at(&metadata).max(*newest);
            }
        }
        Self {
            since,
            known,
            known_in,
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
                if self.most == 0 || Instant::now() >= self.until {
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

    fn is_changed(&self, path: &Path, metadata: &Metadata) -> bool {
        if self.known.contains(path) || !is_since(metadata, self.since) {
            return false;
        }
        // A tool replaces a file, which changes the directory too.
        let by_tool = self.known_in.get(path);
        by_tool.is_none_or(|at| changed_at(metadata) > at.saturating_add(COARSE_MS))
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
        let mut late = Nested::new(since, BTreeSet::new());
        late.until = Instant::now();
        assert!(late.may_be_changed(root.path()));
    }

    /// It is compared with how it was left.
    #[test]
    fn a_file_that_a_tool_wrote_and_its_directory_do_not_count() {
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
        assert_eq!(is_changed(&[&file]), (false, false));
        // Another one that is gone explains nothing.
        assert_eq!(is_changed(&[&root.path().join("src/b")]), (true, true));
    }
}
