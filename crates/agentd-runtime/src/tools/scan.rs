//! Finds what commands changed, with git, which runs in the sandbox of commands: a repository's configuration can
//! execute programs. See docs/design/025-file-history.md.

mod git;
mod look;
mod nested;
mod status;

use super::blocking;
use super::context::ToolContext;
use super::escalate::Escalation;
use super::failure::Failure;
use super::paths;
use super::scans::{Before, WorkTree};
use super::spans::{self, Running, Span};
use agentd_core::event::{Scan, ScanProblem};
use agentd_core::state::ScanSince;
use git::{MOST_FILES, Untracked};
use look::{Look, NotRead};
use nested::Nested;
use status::{Entry, Status};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long files are read, after git has listed them.
const TIME: Duration = Duration::from_millis(200);

/// The files that changed since then, except those that file tools left as they are now.
pub(super) async fn scan(context: &Arc<ToolContext>, since: ScanSince) -> Scan {
    match find(context, since).await {
        Ok(known) => known,
        Err(why) => Scan::Unknown { why },
    }
}

/// Before the first command of a turn, or another call that may change files like one: remembers which files are missing,
/// and which have changes that are not committed. Afterwards it could not be told whether a command has deleted a file, or
/// whether git has what the file was. The call runs until the answer is dropped.
pub(super) async fn before_command(context: &Arc<ToolContext>) -> Running {
    let _one = context.scans.asking.lock().await;
    if !context.scans.is_asked() {
        let tree = work_tree(context).await;
        context.scans.set_before(tree);
    }
    context.scans.spans.begin()
}

async fn work_tree(context: &Arc<ToolContext>) -> Option<WorkTree> {
    let asked = spans::now();
    let (root, status) = git::status(context, Untracked::No).await.ok()?;
    if status.more > 0 {
        return None;
    }
    let mut missing = deleted(&root, &status.entries);
    let changed = status.entries.iter().map(|entry| root.join(&entry.path));
    let changed = changed.collect();
    // What tools left may be unknown to git.
    let at = Arc::clone(context);
    let looked = blocking::whole(move || {
        at.on_thread(|| {
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
    Some(WorkTree {
        asked,
        commit: status.commit,
        missing,
        changed,
    })
}

/// The tracked files that are missing.
fn deleted(root: &Path, entries: &[Entry]) -> BTreeSet<PathBuf> {
    let deleted = entries.iter().filter(|entry| entry.is_deleted());
    deleted.map(|entry| root.join(&entry.path)).collect()
}

/// What is known of the time before a scan.
struct Earlier {
    since: ScanSince,
    before: Before,
    spans: Vec<Arc<Span>>,
    /// What was missing at the last scan, if that is known.
    missing: Option<BTreeSet<PathBuf>>,
}

async fn find(context: &Arc<ToolContext>, since: ScanSince) -> Result<Scan, ScanProblem> {
    let earlier = Earlier {
        since,
        before: context.scans.take_before().of_turn(since.began),
        spans: context.scans.spans.take(),
        missing: context.scans.missing(),
    };
    // What is missing now is known again if git tells.
    context.scans.set_missing(None);
    let (root, status) = git::status(context, Untracked::All).await?;
    let at = Arc::clone(context);
    let looked = blocking::whole(move || {
        at.on_thread(|| {
            let is_above = is_above(&root, &at.cwd);
            let scan = is_above.then(|| changed(&at, &root, status, earlier));
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

fn changed(context: &ToolContext, root: &Path, status: Status, earlier: Earlier) -> Scan {
    context.scans.resolve(|path| {
        let path = paths::locate(&context.cwd, path).ok()?;
        let real = paths::real(&path);
        // The host may have another file there, or none.
        context.shares(&real, &Escalation::None).then_some(real)
    });
    if status.more == 0 {
        let missing = deleted(root, &status.entries);
        context.scans.set_missing(Some(missing));
    }
    let look = Look {
        root,
        since: earlier.since,
        until: Instant::now() + TIME,
        scans: &context.scans,
        before: earlier.before,
        spans: earlier.spans,
        missing: earlier.missing,
        commit: status.commit,
    };
    let mut more = status.more;
    let mut listed = BTreeSet::new();
    let mut files = Vec::new();
    for entry in status.entries {
        let path = root.join(&entry.path);
        files.extend(look.entry(&path, entry));
        listed.insert(path);
    }
    // What git does not list is as in the newest commit, or ignored, or gone and was never known to git.
    let left = context.scans.all();
    for (path, left) in left.iter().filter(|(path, _)| !listed.contains(path)) {
        match look.left(path, left) {
            Some(_) if files.len() >= MOST_FILES => more += 1,
            Some(Ok(file)) => files.push(file),
            Some(Err(NotRead)) => more += 1,
            None => {}
        }
    }
    if !status.nested.is_empty() {
        // That something in it was changed is all that is known.
        let known = left.into_iter().map(|(path, _)| path);
        let mut inside = Nested::new(look.since.from, known.collect());
        let nested = status.nested.iter().map(|dir| root.join(dir));
        more += nested.filter(|dir| inside.may_be_changed(dir)).count() as u64;
    }
    Scan::Known { files, more }
}

#[cfg(test)]
mod tests {
    use super::*;

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
