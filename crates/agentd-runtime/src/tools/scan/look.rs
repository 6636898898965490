//! What a scan finds at one path: whether it was changed since, and what git and the tools know of it.

use super::status::Entry;
use crate::tools::hash::{self, Hasher};
use crate::tools::scans::{Before, Difference, LeftFile, Scans};
use crate::tools::spans::{COARSE_MS, Span};
use agentd_core::event::{GitBefore, ScannedChange, ScannedFile};
use agentd_core::state::ScanSince;
use agentd_core::time::Timestamp;
use agentd_files::foreign::{self, Links};
use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// A file that may have been changed, and was not read in time.
pub(super) struct NotRead;

/// How a scan looks at files.
pub(super) struct Look<'a> {
    pub root: &'a Path,
    pub since: ScanSince,
    /// Later, contents are not read.
    pub until: Instant,
    pub scans: &'a Scans,
    pub before: Before,
    /// When the calls of the turn ran that may have changed files.
    pub spans: Vec<Arc<Span>>,
    /// What was missing at the last scan, if that is known.
    pub missing: Option<BTreeSet<PathBuf>>,
    /// The newest commit.
    pub commit: Option<String>,
}

/// A change since the last scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    /// While the commands of the turn ran.
    InTurn,
    /// While at most background commands ran: perhaps not by them.
    Unsure,
}

impl Look<'_> {
    /// What commands did to a path that git lists; `None` if they did nothing.
    pub fn entry(&self, path: &Path, entry: Entry) -> Option<ScannedFile> {
        let shown = path.to_str()?.to_owned();
        let (mut link, mut mode, mut changed) = (false, None, None);
        let (made, after) = match entry.is_deleted() {
            true => (self.deletion(path)?, None),
            false => {
                let metadata = fs::symlink_metadata(path).ok()?;
                let made = self.made(&metadata)?;
                link = metadata.is_symlink();
                mode = permissions(&metadata);
                changed = Some(changed_at(&metadata));
                (made, content(path, &metadata, self.until))
            }
        };
        let is_known = entry.is_deleted() || after.is_some();
        let difference = match is_known && !link {
            true => self.scans.compare(path, after.as_deref(), mode),
            // File tools write through links, so they leave none.
            false => Difference::Content,
        };
        if difference == Difference::None {
            return None;
        }
        self.record(path, after.as_ref(), mode, is_known && !link);
        let git_before = match (made, &entry.head) {
            (Made::InTurn, Some(_)) => self.before.git(path, self.commit.as_deref()),
            _ => None,
        };
        // The user may have changed it between two calls: then git has not what it was. Where no file is any more, there
        // are no lines of the user to lose.
        let is_by_call = changed.is_none_or(|at| self.spans.iter().any(|span| span.has(at)));
        let git_before = git_before.filter(|it| *it != GitBefore::Clean || is_by_call);
        Some(ScannedFile {
            path: shown,
            change: entry.change,
            head: entry.head,
            index: entry.index,
            mode: match git_before {
                // The command may have changed the index.
                Some(GitBefore::Clean) => entry.head_mode,
                _ => entry.mode,
            },
            after,
            link,
            mode_before: difference.mode(),
            unsure: made == Made::Unsure,
            git_before,
        })
    }

    /// When a file was changed; `None` if it was before the last scan.
    fn made(&self, metadata: &Metadata) -> Option<Made> {
        let is_asked = !matches!(self.before, Before::NotAsked);
        match is_since(metadata, self.since.began) {
            // A turn that ran no commands is scanned because of background commands.
            true if is_asked || !self.is_late() => Some(Made::InTurn),
            true => Some(Made::Unsure),
            false => is_since(metadata, self.since.from).then_some(Made::Unsure),
        }
    }

    /// Whether background commands ran before the turn.
    fn is_late(&self) -> bool {
        self.since.from < self.since.began
    }

    /// When a path was deleted that is missing; `None` if commands have not deleted it.
    fn deletion(&self, path: &Path) -> Option<Made> {
        let is_since = |since| is_deleted_since(self.root, path, since);
        let was_missing = self.missing.as_ref().is_some_and(|it| it.contains(path));
        match self.before.is_known() {
            true if !self.before.is_missing(path) && is_since(self.since.began) => {
                Some(Made::InTurn)
            }
            true if !self.is_late() => None,
            _ if self.is_late() && was_missing => None,
            _ => is_since(self.since.from).then_some(Made::Unsure),
        }
    }

    /// What commands did to a path that git does not list, and that was left like this.
    pub fn left(&self, path: &Path, left: &LeftFile) -> Option<Result<ScannedFile, NotRead>> {
        let shown = path.to_str()?.to_owned();
        let metadata = fs::symlink_metadata(path).ok();
        let (made, after, mode, link) = match &metadata {
            None if left.content.is_none() => return None,
            None => {
                let made = self.deletion(path)?;
                let made = if self.is_late() { made } else { Made::InTurn };
                (made, None, None, false)
            }
            Some(metadata) => {
                let made = self.made(metadata)?;
                let Some(after) = content(path, metadata, self.until) else {
                    return Some(Err(NotRead));
                };
                let link = metadata.is_symlink();
                (made, Some(after), permissions(metadata), link)
            }
        };
        let difference = match link {
            true => Difference::Content,
            false => left.compare(after.as_deref(), mode),
        };
        if difference == Difference::None {
            return None;
        }
        self.record(path, after.as_ref(), mode, !link);
        Some(Ok(ScannedFile {
            path: shown,
            change: match (&left.content, &after) {
                (_, None) => ScannedChange::Deleted,
                (None, Some(_)) => ScannedChange::Added,
                (Some(_), Some(_)) if link => ScannedChange::TypeChanged,
                (Some(_), Some(_)) => ScannedChange::Modified,
            },
            head: None,
            index: None,
            mode: 0,
            after,
            link,
            mode_before: difference.mode(),
            unsure: made == Made::Unsure,
            git_before: None,
        }))
    }

    fn record(&self, path: &Path, after: Option<&String>, mode: Option<u32>, is_known: bool) {
        let left = LeftFile {
            content: after.cloned(),
            mode,
        };
        self.scans.recorded(path, is_known.then_some(left));
    }
}

impl Difference {
    const fn mode(self) -> Option<u32> {
        match self {
            Self::Mode(before) => Some(before),
            Self::None | Self::Content => None,
        }
    }
}

fn permissions(metadata: &Metadata) -> Option<u32> {
    metadata.is_file().then(|| metadata.mode() & 0o7777)
}

pub(super) fn is_since(metadata: &Metadata, since: Timestamp) -> bool {
    changed_at(metadata).saturating_add(COARSE_MS) >= since.as_millis()
}

/// In milliseconds since 1970.
fn changed_at(metadata: &Metadata) -> i64 {
    metadata.ctime().saturating_mul(1000) + metadata.ctime_nsec() / 1_000_000
}

/// Whether the deletion of this path may have happened since: it changed the nearest directory that still exists.
fn is_deleted_since(root: &Path, path: &Path, since: Timestamp) -> bool {
    let parents = path.ancestors().skip(1);
    let mut parents = parents.take_while(|dir| dir.starts_with(root));
    let nearest = parents.find_map(|dir| fs::symlink_metadata(dir).ok());
    nearest.is_none_or(|metadata| is_since(&metadata, since))
}

/// The hash of a regular file, unless it takes too long, or of the target of a symlink.
fn content(path: &Path, metadata: &Metadata, until: Instant) -> Option<String> {
    if metadata.is_symlink() {
        let target = fs::read_link(path).ok()?;
        return Some(hash::of(target.as_os_str().as_bytes()));
    }
    if !metadata.is_file() {
        return None;
    }
    // It may have been replaced by a link or a pipe since.
    let mut file = foreign::open(path, Links::NotLast).ok()?;
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; 64 * 1024];
    while Instant::now() < until {
        match file.read(&mut buffer).ok()? {
            0 => return Some(hasher.finish()),
            read => hasher.update(&buffer[..read]),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the user deleted before the turn is not the agent's, whatever an earlier scan has seen.
    #[test]
    fn a_deletion_is_dated_by_the_nearest_directory_that_exists() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        let changed = fs::metadata(root.join("a")).unwrap();
        let changed = changed.ctime() * 1000 + changed.ctime_nsec() / 1_000_000;
        let at = |ms: i64| Timestamp::from_millis(changed + ms);
        let gone = root.join("a/gone");
        assert!(is_deleted_since(root, &gone, at(-1000)));
        assert!(!is_deleted_since(root, &gone, at(1000)));
        // Its directory was deleted too.
        let deep = root.join("a/none/gone");
        assert!(is_deleted_since(root, &deep, at(-1000)));
        assert!(!is_deleted_since(root, &deep, at(1000)));
    }
}
