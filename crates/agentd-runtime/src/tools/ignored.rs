//! Which entries of a walk are ignored: by `.ignore`, `.gitignore`, or the `info/exclude` of a git directory.
//!
//! A command of the agent can write these files: each can be a link to a device, a pipe or a file without end. So they are
//! not loaded by the crate `ignore`, which opens whatever is there and reads all of it; the crate only matches.

use agentd_failpoint as failpoint;
use agentd_files::foreign::{self, Error, Links};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The largest ignore file, in bytes.
const LARGEST: u64 = 256 * 1024;
/// How much the ignore files of one directory and of those above it may have together.
const LARGEST_CHAIN: u64 = 2 * 1024 * 1024;
/// The longest path in a file of git.
const LONGEST_PATH: u64 = 8 * 1024;

/// The ignore files for the entries below one directory, read when they are needed.
pub(super) struct Ignored {
    /// As the walk names it, and without links.
    root: PathBuf,
    real: PathBuf,
    /// Changed by each entry in another directory than the one before.
    chain: Mutex<Chain>,
}

/// The ignore files of one directory, and of those above it.
#[derive(Default)]
struct Chain {
    /// From the root of the file system down.
    levels: Vec<Level>,
    /// The first ignore file that is not used, and why.
    unused: Option<String>,
}

struct Level {
    dir: PathBuf,
    bytes: u64,
    ignore: Gitignore,
    git_ignore: Gitignore,
    git_exclude: Gitignore,
}

impl Ignored {
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            real: fs::canonicalize(root).unwrap_or_else(|_| root.to_owned()),
            chain: Mutex::default(),
        }
    }

    /// Whether an entry below the root of the walk is ignored. Above all others counts `.ignore`, then `.gitignore`; of each
    /// kind, the nearest file that says something about the entry.
    pub fn contains(&self, path: &Path, is_dir: bool) -> bool {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let path = self.real.join(below);
        let Some(dir) = path.parent() else {
            return false;
        };
        let mut chain = self.chain.lock().unwrap_or_else(PoisonError::into_inner);
        chain.enter(dir);
        let nearest = |of: fn(&Level) -> &Gitignore| {
            let levels = chain.levels.iter().rev();
            let mut found = levels.map(|level| of(level).matched(&path, is_dir));
            found.find(|found| !found.is_none()).unwrap_or(Match::None)
        };
        let found = nearest(|level| &level.ignore)
            .or(nearest(|level| &level.git_ignore))
            .or(nearest(|level| &level.git_exclude));
        found.is_ignore()
    }

    /// The first ignore file that is not used, and why.
    pub fn unused(&self) -> Option<String> {
        let chain = self.chain.lock().unwrap_or_else(PoisonError::into_inner);
        chain.unused.clone()
    }
}

impl Chain {
    /// Makes this directory the last one. A walk asks for the entries of a directory one after the other, so each directory
    /// is read once or twice.
    fn enter(&mut self, dir: &Path) {
        while let Some(last) = self.levels.last()
            && !dir.starts_with(&last.dir)
        {
            self.levels.pop();
        }
        let known = self.levels.last().map(|last| last.dir.clone());
        let mut new: Vec<&Path> = dir
            .ancestors()
            .take_while(|dir| Some(*dir) != known.as_deref())
            .collect();
        new.reverse();
        for dir in new {
            let level = self.read(dir);
            self.levels.push(level);
        }
    }

    fn read(&mut self, dir: &Path) -> Level {
        let mut level = Level {
            dir: dir.to_owned(),
            bytes: self.levels.last().map_or(0, |above| above.bytes),
            ignore: Gitignore::empty(),
            git_ignore: Gitignore::empty(),
            git_exclude: Gitignore::empty(),
        };
        level.ignore = self.matcher(&mut level, &dir.join(".ignore"));
        level.git_ignore = self.matcher(&mut level, &dir.join(".gitignore"));
        if let Some(git) = git_dir(dir) {
            level.git_exclude = self.matcher(&mut level, &git.join("info/exclude"));
        }
        level
    }

    /// The patterns of one file. They apply to what is below the directory of the level.
    fn matcher(&mut self, level: &mut Level, path: &Path) -> Gitignore {
        if failpoint::injected_bug("links_followed") {
            let file = File::open(path).map(|file| file.take(LARGEST * 1024));
            let _read = file.and_then(|mut file| file.read_to_end(&mut Vec::new()));
            return Gitignore::empty();
        }
        let room = LARGEST.min(LARGEST_CHAIN.saturating_sub(level.bytes));
        let bytes = match foreign::read(path, Links::NotLast, room) {
            Ok(bytes) => bytes,
            // Not there, or not visible to this tool.
            Err(Error::NotFound | Error::Io(_)) => return Gitignore::empty(),
            Err(error) => {
                let why = || format!("{}: {error}", path.display());
                self.unused.get_or_insert_with(why);
                return Gitignore::empty();
            }
        };
        level.bytes += bytes.len() as u64;
        let text = match std::str::from_utf8(&bytes) {
            Ok(text) => text,
            // The lines before it count.
            Err(error) => str::from_utf8(&bytes[..error.valid_up_to()])
                .ok()
                .and_then(|valid| valid.rsplit_once('\n'))
                .map_or("", |(lines, _)| lines),
        };
        let mut builder = GitignoreBuilder::new(&level.dir);
        for line in text.trim_start_matches('\u{feff}').lines() {
            // A pattern that is none is left out, as git does.
            let _invalid = builder.add_line(None, line);
        }
        builder.build().unwrap_or_else(|_| Gitignore::empty())
    }
}

/// The git directory whose `info/exclude` counts for a work tree: its own, or the one that a linked work tree shares.
fn git_dir(tree: &Path) -> Option<PathBuf> {
    let git = tree.join(".git");
    let kind = git.symlink_metadata().ok()?;
    if kind.is_dir() {
        return Some(git);
    }
    let line = |path: &Path| {
        let text = foreign::read_text(path, Links::NotLast, LONGEST_PATH).ok()?;
        text.lines().next().map(str::to_owned)
    };
    let own = tree.join(line(&git)?.strip_prefix("gitdir: ")?);
    let common = line(&own.join("commondir"))?;
    Some(own.join(common))
}

#[cfg(test)]
mod tests;
