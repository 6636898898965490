//! Finds what commands changed, with git, which runs in the sandbox of commands: a repository's configuration can
//! execute programs. See docs/design/025-file-history.md.

mod status;

use super::blocking;
use super::context::{Escalation, ToolContext};
use super::failure::Failure;
use super::hash::{self, Hasher};
use super::paths;
use super::scans::{Difference, LeftFile, Scans};
use agentd_core::event::{Scan, ScanProblem, ScannedChange, ScannedFile};
use agentd_core::time::Timestamp;
use agentd_process::task::{self, Exit, Found, Order};
use rustix::fs::OFlags;
use status::{Entry, Status};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How long git may take, and how long files are read after that.
const TIME: Duration = Duration::from_millis(200);
/// How long the sandbox and the end of the task may take in addition.
const PATIENCE: Duration = Duration::from_secs(2);
const MOST_FILES: usize = 10_000;
/// Enough for that many names of usual length.
const OUTPUT_BYTES: u64 = 4 * 1024 * 1024;
/// The clock of a file system may be behind by this much.
const COARSE_MS: i64 = 20;
/// The exit code of a shell that does not find the program, and of [`GIT`] without a repository.
const NOT_FOUND: i32 = 127;

/// First the root of the work tree, then its status. `status` writes nothing, and reads neither submodules nor what a
/// monitor says. The names of objects are complete.
const GIT: &str = "root=$(git rev-parse --show-toplevel) || exit 127; printf '%s\\0' \"$root\"; \
                   exec git --no-optional-locks -c core.fsmonitor=false -c core.untrackedCache=false -c core.quotePath=false \
                   status --porcelain=v2 -z --untracked-files=all --no-renames --ignore-submodules=all --no-ahead-behind";

/// The files that changed since then, except those that file tools left as they are now.
pub(super) async fn scan(context: &Arc<ToolContext>, since: Timestamp) -> Scan {
    match find(context, since).await {
        Ok(known) => known,
        Err(why) => Scan::Unknown { why },
    }
}

async fn find(context: &Arc<ToolContext>, since: Timestamp) -> Result<Scan, ScanProblem> {
    let at = Arc::clone(context);
    let found =
        blocking::whole(move || at.within(|| Ok::<_, Failure>(may_have_work_tree(&at.cwd))));
    if !found.await.is_ok_and(|found| found.unwrap_or_default()) {
        return Err(ScanProblem::NoGit);
    }
    let dir = context.state.join("scans").join(Uuid::now_v7().to_string());
    let output = run(context, &dir).await;
    let output = tokio::task::spawn_blocking(move || {
        let read =
            output.and_then(|exit| Ok((fs::read(dir.join("output")).map_err(failed)?, exit)));
        // A directory that stays is removed with the agent.
        drop(fs::remove_dir_all(&dir));
        read
    });
    let (output, exit) = output.await.map_err(|_| ScanProblem::Failed)??;
    let (root, output) = rooted(&output).ok_or(ScanProblem::Failed)?;
    let mut status = Status::read(output, MOST_FILES);
    if exit.dropped_bytes > 0 {
        status.more += 1;
    }
    let at = Arc::clone(context);
    let looked = blocking::whole(move || {
        at.within(|| {
            let scan = is_above(&root, &at.cwd).then(|| changed(&at, &root, status, since));
            Ok::<_, Failure>(scan)
        })
    });
    let found = looked.await.ok().and_then(Result::ok).flatten();
    found.ok_or(ScanProblem::Failed)
}

/// Without this, git is not started at all. Which directory is the root of the work tree, git says.
fn may_have_work_tree(cwd: &Path) -> bool {
    let cwd = fs::canonicalize(cwd);
    cwd.is_ok_and(|cwd| cwd.ancestors().any(|dir| dir.join(".git").exists()))
}

/// The root of the work tree, and what follows it.
fn rooted(output: &[u8]) -> Option<(PathBuf, &[u8])> {
    let end = output.iter().position(|byte| *byte == 0)?;
    let (root, rest) = output.split_at_checked(end)?;
    let root = PathBuf::from(OsStr::from_bytes(root));
    root.is_absolute()
        .then(|| (root, rest.get(1..).unwrap_or_default()))
}

/// Whether a work tree contains this directory. The answer comes from the sandbox, and may be anything.
fn is_above(root: &Path, cwd: &Path) -> bool {
    fs::canonicalize(cwd).is_ok_and(|cwd| cwd.starts_with(root))
}

fn failed(error: io::Error) -> ScanProblem {
    tracing::debug!(%error, "scan failed");
    ScanProblem::Failed
}

/// Runs git as a command of the agent.
async fn run(context: &ToolContext, dir: &Path) -> Result<Exit, ScanProblem> {
    let order = Order {
        program: PathBuf::from("/bin/sh"),
        args: vec!["-c".to_owned(), GIT.to_owned()],
        env: context.env.clone(),
        cwd: context.cwd.clone(),
        time_limit_ms: Some(TIME.as_millis() as u64),
        grace_ms: 0,
        output_limit_bytes: OUTPUT_BYTES,
        foreground: true,
        errors_apart: true,
        lab: context.lab.clone(),
        limits: context.task_limits,
        confined: context.confined(true, Escalation::None),
        ..Order::default()
    };
    let task = task::start(&context.shim, dir, &order).await;
    let task = task.map_err(|error| {
        tracing::debug!(%error, "scan not started");
        ScanProblem::Failed
    })?;
    let ended = tokio::time::timeout(TIME + PATIENCE, task.ended()).await;
    let Ok(ended) = ended else {
        // One that is gone by now has ended.
        drop(task.kill());
        return Err(ScanProblem::Timeout);
    };
    match ended {
        Ok(Found::Ended(exit)) if exit.timed_out => Err(ScanProblem::Timeout),
        Ok(Found::Ended(exit)) if exit.code == Some(0) => Ok(exit),
        Ok(Found::Ended(exit)) if exit.code == Some(NOT_FOUND) => Err(ScanProblem::NoGit),
        _ => Err(ScanProblem::Failed),
    }
}

fn changed(context: &ToolContext, root: &Path, status: Status, since: Timestamp) -> Scan {
    context.scans.resolve(|path| {
        let path = paths::locate(&context.cwd, path).ok()?;
        Some(paths::real(&path))
    });
    let look = Look {
        root,
        since,
        until: Instant::now() + TIME,
        scans: &context.scans,
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
}

impl Look<'_> {
    /// What commands did to a path that git lists; `None` if they did nothing.
    fn entry(&self, path: &Path, entry: Entry) -> Option<ScannedFile> {
        let shown = path.to_str()?.to_owned();
        let (mut link, mut mode) = (false, None);
        let after = match entry.is_deleted() {
            true if is_deleted_since(self.root, path, self.since) => None,
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
        })
    }

    /// What commands did to a path that git does not list, and that was left like this.
    fn left(&self, path: &Path, left: &LeftFile) -> Option<Result<ScannedFile, NotRead>> {
        let shown = path.to_str()?.to_owned();
        let metadata = fs::symlink_metadata(path).ok();
        let (after, mode, link) = match &metadata {
            None if left.content.is_none() => return None,
            None if !is_deleted_since(self.root, path, self.since) => return None,
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
        let found = rooted(b"/a b\0? c\0? d\0").unwrap();
        assert_eq!(found, (PathBuf::from("/a b"), b"? c\0? d\0".as_slice()));
        assert_eq!(rooted(b"/a\0").unwrap().1, b"");
        for output in [b"".as_slice(), b"/a", b"a\0", b"\0? a\0"] {
            assert_eq!(rooted(output), None);
        }
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
