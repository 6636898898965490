//! What scans for changed files remember: what file tools, and commands of earlier turns, have left.

use super::contents;
use super::spans::{COARSE_MS, Spans};
use agentd_core::event::GitBefore;
use agentd_core::time::Timestamp;
use agentd_core::window::SeenFiles;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// At most so many files that commands left are remembered.
const MOST_FILES: usize = 10_000;

/// What scans remember within one process. A new process begins with what the conversation tells about the tools.
#[derive(Debug, Default)]
pub(super) struct Scans {
    left: Mutex<BTreeMap<PathBuf, LeftFile>>,
    /// What an earlier process left, by the path as the model wrote it. Resolved by the first scan: in the sandbox.
    recalled: Mutex<Vec<(String, Recalled)>>,
    /// The contents that the model knew when this process began.
    seen: Mutex<SeenFiles>,
    before: Mutex<Before>,
    /// When the calls ran that may have changed files.
    pub spans: Spans,
    /// What was missing at the last scan.
    missing: Mutex<Option<BTreeSet<PathBuf>>>,
    /// Held while git is asked about the work tree: the commands of a turn wait for the answer.
    pub asking: tokio::sync::Mutex<()>,
}

/// The work tree before the first command of the turn.
#[derive(Debug, Default)]
pub(super) enum Before {
    /// The turn has run no command.
    #[default]
    NotAsked,
    Unknown,
    Known(WorkTree),
}

/// What git tells about a work tree.
#[derive(Debug, Default)]
pub(super) struct WorkTree {
    /// When git was asked, in milliseconds since 1970.
    pub asked: i64,
    /// The newest commit, if git has told it.
    pub commit: Option<String>,
    /// Files that are missing: no later command has deleted them.
    pub missing: BTreeSet<PathBuf>,
    /// Tracked files that differ from the newest commit, or in the index.
    pub changed: BTreeSet<PathBuf>,
}

impl Before {
    /// What was asked before the turn began is not known of this turn: its own scan was not made.
    pub fn of_turn(self, began: Timestamp) -> Self {
        match self {
            Self::Known(tree) if tree.asked.saturating_add(COARSE_MS) < began.as_millis() => {
                Self::Unknown
            }
            before => before,
        }
    }

    pub fn is_missing(&self, path: &Path) -> bool {
        matches!(self, Self::Known(tree) if tree.missing.contains(path))
    }

    pub const fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }

    /// How a tracked file compared with git; `commit` is the newest one now. If there was another one before, the file may
    /// have had another content.
    pub fn git(&self, path: &Path, commit: Option<&str>) -> Option<GitBefore> {
        let Self::Known(tree) = self else {
            return None;
        };
        if tree.changed.contains(path) {
            return Some(GitBefore::Changed);
        }
        let is_same = commit.is_some() && tree.commit.as_deref() == commit;
        is_same.then_some(GitBefore::Clean)
    }
}

/// What an earlier process left at a path, as the conversation tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Recalled {
    Removed,
    /// With this hash.
    Content(String),
    /// The content that the model knows: its own change is the last that it knows of.
    AsSeen,
}

/// How a path was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeftFile {
    /// The hash of the content; `None` for a file that was removed.
    pub content: Option<String>,
    /// The permission bits, if they are known.
    pub mode: Option<u32>,
}

/// What is at a path, compared with how it was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    None,
    /// Only the permission bits are others: they were these.
    Mode(u32),
    /// The content is another one, or it is not known how the path was left.
    Content,
}

impl Scans {
    pub fn wrote(&self, path: &Path, hash: &str, mode: Option<u32>) {
        let left = LeftFile {
            content: Some(hash.to_owned()),
            mode,
        };
        self.left().insert(path.to_owned(), left);
        if let Before::Known(tree) = &mut *guard(&self.before) {
            tree.missing.remove(path);
            // A later command finds what the tool wrote.
            tree.changed.insert(path.to_owned());
        }
        if let Some(missing) = &mut *guard(&self.missing) {
            missing.remove(path);
        }
    }

    pub fn removed(&self, path: &Path) {
        let left = LeftFile {
            content: None,
            mode: None,
        };
        self.left().insert(path.to_owned(), left);
        if let Before::Known(tree) = &mut *guard(&self.before) {
            tree.changed.insert(path.to_owned());
        }
    }

    /// A scan has recorded this: the next one compares with it. Without `left` it is not known how it was left.
    pub fn recorded(&self, path: &Path, left: Option<LeftFile>) {
        let mut all = self.left();
        match left {
            Some(left) if all.len() < MOST_FILES || all.contains_key(path) => {
                all.insert(path.to_owned(), left);
            }
            _ => {
                all.remove(path);
            }
        }
    }

    /// A restore has left a path like this: that is not a change by commands.
    pub fn restored(&self, path: &Path, left: Option<LeftFile>) {
        if let Some(missing) = &mut *guard(&self.missing) {
            missing.remove(path);
        }
        self.recorded(path, left);
    }

    pub fn is_asked(&self) -> bool {
        !matches!(*guard(&self.before), Before::NotAsked)
    }

    /// The work tree before the first command; `None` if git did not tell.
    pub fn set_before(&self, tree: Option<WorkTree>) {
        *guard(&self.before) = tree.map_or(Before::Unknown, Before::Known);
    }

    /// The work tree before the commands of the turn that has ended. The next turn asks again.
    pub fn take_before(&self) -> Before {
        std::mem::take(&mut *guard(&self.before))
    }

    /// What was missing at the last scan; `None` if that is not known.
    pub fn missing(&self) -> Option<BTreeSet<PathBuf>> {
        guard(&self.missing).clone()
    }

    /// A scan has found this missing.
    pub fn set_missing(&self, missing: Option<BTreeSet<PathBuf>>) {
        *guard(&self.missing) = missing;
    }

    /// An earlier process left this.
    pub fn recall(&self, recalled: Vec<(String, Recalled)>, seen: SeenFiles) {
        *guard(&self.recalled) = recalled;
        *guard(&self.seen) = seen;
    }

    /// Adds what an earlier process left; what this one left is newer.
    pub fn resolve(&self, resolve: impl Fn(&str) -> Option<PathBuf>) {
        let recalled = std::mem::take(&mut *guard(&self.recalled));
        let seen = guard(&self.seen).clone();
        let mut left = self.left();
        for (path, recalled) in recalled {
            let Some(path) = resolve(&path) else { continue };
            let content = match recalled {
                Recalled::Removed => None,
                Recalled::Content(hash) => Some(hash),
                Recalled::AsSeen => match seen.content_of(&contents::id(&path)) {
                    Some(hash) => Some(hash.to_owned()),
                    None => continue,
                },
            };
            let mode = None;
            left.entry(path).or_insert(LeftFile { content, mode });
        }
    }

    /// All paths, with how they were left.
    pub fn all(&self) -> Vec<(PathBuf, LeftFile)> {
        let left = self.left();
        left.iter()
            .map(|(path, left)| (path.clone(), left.clone()))
            .collect()
    }

    /// Compares what is at a path: this content, or none, and these permission bits.
    pub fn compare(&self, path: &Path, content: Option<&str>, mode: Option<u32>) -> Difference {
        match self.left().get(path) {
            Some(left) => left.compare(content, mode),
            None => Difference::Content,
        }
    }

    fn left(&self) -> MutexGuard<'_, BTreeMap<PathBuf, LeftFile>> {
        guard(&self.left)
    }
}

impl LeftFile {
    pub fn compare(&self, content: Option<&str>, mode: Option<u32>) -> Difference {
        match (self.mode, mode) {
            _ if self.content.as_deref() != content => Difference::Content,
            (Some(left), Some(now)) if left != now => Difference::Mode(left),
            _ => Difference::None,
        }
    }
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_permission_bits_count_if_they_are_known() {
        let left = LeftFile {
            content: Some("one".to_owned()),
            mode: Some(0o644),
        };
        assert_eq!(left.compare(Some("one"), Some(0o644)), Difference::None);
        assert_eq!(
            left.compare(Some("one"), Some(0o755)),
            Difference::Mode(0o644)
        );
        assert_eq!(left.compare(Some("two"), Some(0o755)), Difference::Content);
        assert_eq!(left.compare(None, None), Difference::Content);
        let recalled = LeftFile { mode: None, ..left };
        assert_eq!(recalled.compare(Some("one"), Some(0o755)), Difference::None);
    }

    /// A commit by a command makes its own content that of the newest commit.
    #[test]
    fn a_file_was_clean_if_git_did_not_list_it_and_the_commit_is_the_same() {
        let (a, b) = (Path::new("/a"), Path::new("/b"));
        let tree = WorkTree {
            asked: 0,
            commit: Some("1".to_owned()),
            missing: BTreeSet::new(),
            changed: BTreeSet::from([b.to_owned()]),
        };
        let known = Before::Known(tree);
        assert_eq!(known.git(a, Some("1")), Some(GitBefore::Clean));
        assert_eq!(known.git(b, Some("1")), Some(GitBefore::Changed));
        assert_eq!(known.git(a, Some("2")), None);
        assert_eq!(known.git(b, Some("2")), Some(GitBefore::Changed));
        assert_eq!(known.git(a, None), None);
        let untold = Before::Known(WorkTree::default());
        assert_eq!(untold.git(a, None), None);
        for before in [Before::NotAsked, Before::Unknown] {
            assert_eq!(before.git(a, Some("1")), None);
        }
    }

    #[test]
    fn what_git_told_before_the_turn_began_is_not_known_of_it() {
        let asked_at = |asked| {
            let tree = WorkTree {
                asked,
                ..WorkTree::default()
            };
            Before::Known(tree).of_turn(Timestamp::from_millis(1000))
        };
        assert!(asked_at(1000).is_known());
        assert!(!asked_at(900).is_known());
    }

    #[test]
    fn what_a_tool_wrote_or_removed_is_not_clean_for_a_later_command() {
        let scans = Scans::default();
        let tree = WorkTree {
            commit: Some("1".to_owned()),
            ..WorkTree::default()
        };
        scans.set_before(Some(tree));
        let [a, b, c] = ["/none/a", "/none/b", "/none/c"].map(Path::new);
        scans.wrote(a, "new", None);
        scans.removed(b);
        let before = scans.take_before();
        assert_eq!(before.git(a, Some("1")), Some(GitBefore::Changed));
        assert_eq!(before.git(b, Some("1")), Some(GitBefore::Changed));
        assert_eq!(before.git(c, Some("1")), Some(GitBefore::Clean));
    }

    #[test]
    fn what_this_process_left_is_newer_than_what_is_recalled() {
        let scans = Scans::default();
        let mut seen = SeenFiles::default();
        seen.extend(&[contents::seen(Path::new("/none/d"), "seen".to_owned())]);
        let recalled = vec![
            ("a".to_owned(), Recalled::Content("old".to_owned())),
            ("b".to_owned(), Recalled::Removed),
            ("c".to_owned(), Recalled::Removed),
            ("d".to_owned(), Recalled::AsSeen),
            ("e".to_owned(), Recalled::AsSeen),
        ];
        scans.recall(recalled, seen);
        scans.wrote(Path::new("/none/a"), "new", None);
        scans.resolve(|path| (path != "c").then(|| Path::new("/none").join(path)));
        let compare = |name: &str, content| scans.compare(Path::new(name), content, None);
        assert_eq!(compare("/none/a", Some("new")), Difference::None);
        assert_eq!(compare("/none/a", Some("old")), Difference::Content);
        assert_eq!(compare("/none/b", None), Difference::None);
        assert_eq!(compare("/none/c", None), Difference::Content);
        assert_eq!(compare("/none/d", Some("seen")), Difference::None);
        assert_eq!(scans.all().len(), 3);
    }
}
