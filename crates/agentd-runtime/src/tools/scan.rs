//! Finds what commands changed, with git, which runs in the sandbox of commands: a repository's configuration can
//! execute programs. See docs/design/025-file-history.md.

mod git;
mod status;

use super::blocking;
use super::context::ToolContext;
use super::failure::Failure;
use super::hash::{self, Hasher};
use super::paths;
use super::scans::{Difference, LeftFile, Missing, Scans};
use agentd_core::event::{Scan, ScanProblem, ScannedChange, ScannedFile};
use agentd_core::time::Timestamp;
use git::{MOST_FILES, Untracked};
use rustix::fs::OFlags;
use status::{Entry, Status};
use std::collections::BTreeSet;
use std::fs::{self, Metadata, OpenOptions};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long files are read, after git has listed them.
const TIME: Duration = Duration::from_millis(200);
/// The clock of a file system may be behind by this much.
const COARSE_MS: i64 = 20;

/// The files that changed since then, except those that file tools left as they are now.
pub(super) async fn scan(context: &Arc<ToolContext>, since: Timestamp) -> Scan {
    match find(context, since).await {
        Ok(known) => known,
        Err(why) => Scan::Unknown { why },
    }
}

/// Before the first command of a turn: remembers which files are missing. When a file was deleted is recorded nowhere, so
/// that afterwards it could not be told whether a command has deleted it.
pub(super) async fn before_command(context: &Arc<ToolContext>) {
    let _one = context.scans.asking.lock().await;
    if !context.scans.is_missing_asked() {
        let missing = missing(context).await;
        context.scans.set_missing(missing);
    }
}

async fn missing(context: &Arc<ToolContext>) -> Option<BTreeSet<PathBuf>> {
    let (root, status) = git::status(context, Untracked::No).await.ok()?;
    if status.more > 0 {
        return None;
    }
    let deleted = status.entries.into_iter().filter(Entry::is_deleted);
    let mut missing: BTreeSet<PathBuf> = deleted.map(|entry| root.join(entry.path)).collect();
    // What tools left may be unknown to git.
    let at = Arc::clone(context);
    let looked = blocking::whole(move || {
        at.within(|| {
            let mut gone = Vec::new();
            for (path, left) in at.scans.all() {
                let is_there = fs::symlink_metadata(&path).is_ok();
                match left.content {
                    Some(_) if !is_there => gone.push(path),
                    // It was created again since: a command may delete it once more.
                    None if is_there => at.scans.recorded(&path, None),
                    Some(_) | None => {}
                }
            }
            Ok::<_, Failure>(gone)
        })
    });
    missing.extend(looked.await.ok()?.ok()?);
    Some(missing)
}

async fn find(context: &Arc<ToolContext>, since: Timestamp) -> Result<Scan, ScanProblem> {
    let missing = context.scans.take_missing();
    let (root, status) = git::status(context, Untracked::All).await?;
    let at = Arc::clone(context);
    let looked = blocking::whole(move || {
        at.within(|| {
            let is_above = is_above(&root, &at.cwd);
            let scan = is_above.then(|| changed(&at, &root, status, (since, missing)));
            Ok::<_, Failure>(scan)
        })
    });
    let found = looked.await.ok().and_then(Result::ok).flatten();
    found.ok_or(ScanProblem::Failed)
}

/// Whether a work tree contains this directory. The answer comes from the sandbox, and may be anything.
fn is_above(root: &Path, cwd: &Path) -> bool {
    fs::canonicalize(cwd).is_ok_and(|cwd| cwd.starts_with(root))
}

fn changed(
    context: &ToolContext,
    root: &Path,
    status: Status,
    (since, missing): (Timestamp, Missing),
) -> Scan {
    context.scans.resolve(|path| {
        let path = paths::locate(&context.cwd, path).ok()?;
        Some(paths::real(&path))
    });
    let look = Look {
        root,
        since,
        until: Instant::now() + TIME,
        scans: &context.scans,
        missing,
    };
    let mut listed = BTreeSet::new();
    let mut files = Vec::new();
    for entry in status.entries {
        let path = root.join(&entry.path);
        files.extend(look.entry(&path, entry));
        listed.insert(path);
    }
    let mut more = status.more;
    // What git does not list is as in the newest commit, or ignored, or gone and was never known to git.
    for (path, left) in context.scans.all() {
        if listed.contains(&path) {
            continue;
        }
        match look.left(&path, &left) {
            Some(_) if files.len() >= MOST_FILES => more += 1,
            Some(Ok(file)) => files.push(file),
            Some(Err(NotRead)) => more += 1,
            None => {}
        }
    }
    Scan::Known { files, more }
}

/// A file that may have been changed, and was not read in time.
struct NotRead;

/// How a scan looks at files.
struct Look<'a> {
    root: &'a Path,
    since: Timestamp,
    /// Later, contents are not read.
    until: Instant,
    scans: &'a Scans,
    missing: Missing,
}

impl Look<'_> {
    /// What commands did to a path that git lists; `None` if they did nothing.
    fn entry(&self, path: &Path, entry: Entry) -> Option<ScannedFile> {
        let shown = path.to_str()?.to_owned();
        let (mut link, mut mode) = (false, None);
        let after = match entry.is_deleted() {
            true if self.is_deleted(path) => None,
            true => return None,
            false => {
                let metadata = fs::symlink_metadata(path).ok();
                let metadata = metadata.filter(|metadata| is_since(metadata, self.since))?;
                link = metadata.is_symlink();
                mode = permissions(&metadata);
                content(path, &metadata, self.until)
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
        Some(ScannedFile {
            path: shown,
            change: entry.change,
            head: entry.head,
            index: entry.index,
            mode: entry.mode,
            after,
            link,
            mode_before: difference.mode(),
            unsure: entry.change == ScannedChange::Deleted && !self.missing.is_known(),
        })
    }

    /// Whether commands may have deleted this path, which is missing.
    fn is_deleted(&self, path: &Path) -> bool {
        !self.missing.has(path) && is_deleted_since(self.root, path, self.since)
    }

    /// What commands did to a path that git does not list, and that was left like this.
    fn left(&self, path: &Path, left: &LeftFile) -> Option<Result<ScannedFile, NotRead>> {
        let shown = path.to_str()?.to_owned();
        let metadata = fs::symlink_metadata(path).ok();
        let (after, mode, link) = match &metadata {
            None if left.content.is_none() => return None,
            None if !self.is_deleted(path) => return None,
            None => (None, None, false),
            Some(metadata) if !is_since(metadata, self.since) => return None,
            Some(metadata) => {
                let Some(after) = content(path, metadata, self.until) else {
                    return Some(Err(NotRead));
                };
                let link = metadata.is_symlink();
                (Some(after), permissions(metadata), link)
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
            unsure: false,
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

fn is_since(metadata: &Metadata, since: Timestamp) -> bool {
    let changed = metadata.ctime().saturating_mul(1000) + metadata.ctime_nsec() / 1_000_000;
    changed.saturating_add(COARSE_MS) >= since.as_millis()
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
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(flags.cast_signed());
    let mut file = options.open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
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

impl Entry {
    fn is_deleted(&self) -> bool {
        self.change == ScannedChange::Deleted
    }
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

    /// What says that it comes from git decides neither where files are looked for nor how much is read.
    #[test]
    fn the_root_of_a_work_tree_is_above_the_working_directory() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let inside = dir.join("inside");
        fs::create_dir(&inside).unwrap();
        assert!(is_above(&dir, &inside) && is_above(&inside, &inside));
        assert!(!is_above(&inside, &dir));
        assert!(!is_above(&inside.join(".."), &dir));
        assert!(!is_above(Path::new("/etc"), &inside));
    }
}
