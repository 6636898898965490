//! Completes a restore that has begun: writes the files in the sandbox, and records what was done. After a crash of the
//! daemon, the next one does this again.

use super::prepare::prepare;
use super::sandbox::ToolSandbox;
use super::tasks::Which;
use super::told::{self, is_restored};
use super::{contents, tasks, worker};
use crate::daemon::{AgentHandle, Daemon};
use crate::error::{Error, Kind, Result};
use crate::spawn::blocking;
use agentd_core::event::{
    Body, FilesPlan, FilesRestoreEnded, FilesRestored, PlannedFile, RestoreOutcome, RestoredFile,
    RestoredOutcome,
};
use agentd_core::files::work::{Work, Written};
use agentd_core::id::{OpId, Seq};
use agentd_core::state::Restore;
use agentd_failpoint as failpoint;
use agentd_process::task::{self, Found};
use agentd_store::ReadQuery;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How often a process that was killed is started again, before its files are recorded as failed.
const ATTEMPTS: u32 = 4;

/// Completes the restore in progress, if there is one.
pub async fn carry_on(handle: AgentHandle) {
    let restore = handle.lock().await.state.files.restoring;
    let mut is_done = true;
    if let Some(restore) = restore {
        match complete(&handle, restore).await {
            Ok(()) => {
                let dir = handle.daemon.layout.restore_dir(handle.id, restore.op);
                remove(dir).await;
            }
            Err(error) => {
                tracing::warn!(agent = %handle.id, op = %restore.op, %error, "restore not recorded");
                is_done = false;
            }
        }
    }
    let mut guard = handle.lock().await;
    guard.restoring = false;
    guard.changed();
    match is_done {
        true => guard.reconcile(),
        false => handle.look_again(),
    }
}

async fn complete(handle: &AgentHandle, restore: Restore) -> Result<()> {
    let Some(plan) = plan(handle, restore).await? else {
        return record(handle, restore, Vec::new(), RestoreOutcome::Failed).await;
    };
    let dir = handle.daemon.layout.restore_dir(handle.id, restore.op);
    let mut outcomes = BTreeMap::new();
    for attempt in 1..=ATTEMPTS {
        match write(handle, &plan, &dir).await {
            Ok(written) => {
                outcomes = written;
                break;
            }
            // The next daemon completes it.
            Err(error) if handle.daemon.is_ending() => return Err(error),
            Err(error) if attempt < ATTEMPTS && error.kind == Kind::Unavailable => {
                tracing::warn!(agent = %handle.id, %error, "files not restored; trying again");
            }
            Err(error) => {
                let why = match error.why {
                    Some(why) => format!("{}: {why}", error.what),
                    None => error.what,
                };
                let failed = |file: &PlannedFile| {
                    let why = why.clone();
                    (file.path.clone(), RestoredOutcome::Failed { why })
                };
                outcomes = plan.files.iter().map(failed).collect();
                break;
            }
        }
    }
    let files = plan.files.into_iter().map(|file| {
        let unreported = || RestoredOutcome::Failed {
            why: "it was not reported as written".to_owned(),
        };
        RestoredFile {
            outcome: outcomes.remove(&file.path).unwrap_or_else(unreported),
            path: file.path,
        }
    });
    let files: Vec<RestoredFile> = files.collect();
    let is_done = files.iter().all(is_restored);
    let outcome = match is_done {
        true => RestoreOutcome::Done,
        false => RestoreOutcome::Failed,
    };
    record(handle, restore, files, outcome).await
}

/// The plan, from the events after the begin. None if it was purged: there is nothing left that could be restored.
async fn plan(handle: &AgentHandle, restore: Restore) -> Result<Option<FilesPlan>> {
    let before = Seq(restore.seq.0.saturating_sub(1));
    let page = handle
        .daemon
        .store
        .read(ReadQuery::all(handle.id, before, 2))
        .await?;
    let mut bodies = page.events.into_iter().map(|event| event.body);
    Ok(bodies.find_map(|body| match body {
        Body::FilesPlan(plan) if plan.op == restore.op => Some(plan),
        _ => None,
    }))
}

async fn write(
    handle: &AgentHandle,
    plan: &FilesPlan,
    dir: &Path,
) -> Result<BTreeMap<String, RestoredOutcome>> {
    let at = end_earlier(dir).await;
    let sandbox = ToolSandbox::of(handle, &BTreeMap::new()).await;
    let contents = dir.join("contents");
    let to_make = contents.clone();
    let made = blocking(move || worker::make(&to_make)).await;
    made.map_err(|error| contents::unwritable(&error))?;
    let (files, mut outcomes) = prepare(handle, &sandbox, plan, &at, &contents).await?;
    failpoint::hit("before", "files_write");
    let work = Work::Write {
        name: plan.op.to_string(),
        files,
    };
    let written = worker::write(&sandbox, &at.join("task"), &work, contents).await?;
    failpoint::hit("after", "files_write");
    outcomes.extend(written.into_iter().map(|(path, outcome)| {
        let outcome = match outcome {
            Written::Done => RestoredOutcome::Restored,
            Written::Changed => RestoredOutcome::Conflict,
            Written::Failed { why } => RestoredOutcome::Failed { why },
        };
        (path, outcome)
    }));
    Ok(outcomes)
}

/// Waits for the writers that earlier attempts started, and returns a new directory for the next one. Two of them may
/// not write the same files at the same time. Git is ended: it is asked again.
async fn end_earlier(dir: &Path) -> PathBuf {
    let mut n = 0;
    loop {
        let at = dir.join(format!("write-{n}"));
        let earlier = at.clone();
        // Of git or of the writer: a task is started once, so its directory cannot be used again.
        let is_there = blocking(move || earlier.is_dir()).await;
        if !is_there {
            return at;
        }
        tasks::end_one(at.join("git")).await;
        let writer = at.join("task");
        let found = blocking(move || task::find(&writer, None)).await;
        if let Ok(Found::Running(running)) = found {
            let _ended = running.ended().await;
        }
        n += 1;
    }
}

/// The events that end a restore.
pub fn over(op: OpId, outcome: RestoreOutcome, files: Vec<RestoredFile>) -> [Body; 2] {
    let restored = files.iter().filter(|file| is_restored(file)).count() as u64;
    let ended = FilesRestoreEnded {
        op,
        outcome,
        restored,
        failed: files.len() as u64 - restored,
    };
    [ended.into(), FilesRestored { op, files }.into()]
}

async fn record(
    handle: &AgentHandle,
    restore: Restore,
    files: Vec<RestoredFile>,
    outcome: RestoreOutcome,
) -> Result<()> {
    let notice = notice(restore, &files);
    let bodies = over(restore.op, outcome, files);
    let mut guard = handle.lock().await;
    let now = guard.state.files.restoring;
    if now.is_none_or(|now| now.op != restore.op) {
        return Ok(());
    }
    failpoint::hit("before", "files_restore_ended");
    guard.note(bodies.into_iter().chain(notice)).await?;
    failpoint::hit("after", "files_restore_ended");
    // What the restore needed may be deleted now, if the agent keeps more than its limit.
    guard.limit_files().await;
    Ok(())
}

/// Tells the model which files are no longer what it knows.
fn notice(restore: Restore, files: &[RestoredFile]) -> Option<Body> {
    let what = match restore.undo_of {
        None => "The user restored files to an earlier state",
        Some(_) => "The user took a restore of files back",
    };
    told::notice(what, files)
}

/// Completes the restores that an earlier daemon began, by their directories.
pub async fn adopt_all(daemon: &Arc<Daemon>) {
    let layout = daemon.layout.clone();
    for dir in blocking(move || layout.all_restores()).await {
        let owner = daemon.layout.owner(&dir);
        let handle = match owner {
            Some(agent) => daemon.existing(agent).await,
            None => Ok(None),
        };
        match handle {
            Ok(Some(handle)) => {
                let mut guard = handle.lock().await;
                match guard.state.files.restoring {
                    Some(it) if daemon.layout.restore_dir(handle.id, it.op) == dir => {
                        guard.reconcile();
                    }
                    _ => {
                        drop(guard);
                        discard(dir).await;
                    }
                }
            }
            Ok(None) => discard(dir).await,
            // It stays on disk: the next daemon completes it.
            Err(error) => {
                let dir = dir.display();
                tracing::error!(%dir, %error, "restore not completed: agent cannot be read");
            }
        }
    }
}

/// Removes a directory that an earlier daemon left. Its processes may still write to it: they are ended first.
async fn discard(dir: PathBuf) {
    tasks::end(&dir, Which::All).await;
    remove(dir).await;
}

/// Removes the directory of a restore.
pub async fn remove(dir: PathBuf) {
    let removed = blocking(move || match std::fs::remove_dir_all(&dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err((dir, error)),
        _ => Ok(()),
    });
    if let Err((dir, error)) = removed.await {
        tracing::warn!(dir = %dir.display(), %error, "directory of a restore not removed");
    }
}

/// The error of a request for a restore that cannot be found.
pub fn nothing(name: &str) -> Error {
    let what = format!("no restore of files of `{name}` can be taken back");
    let next = format!("`agentd files list {name}` lists what it changed");
    Error::new(Kind::NotFound, what).next(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The daemon was killed while git ran, or after it: each attempt needs tasks that have not been started.
    #[tokio::test]
    async fn an_attempt_uses_no_directory_of_an_earlier_one() {
        let dir = tempfile::tempdir().unwrap();
        let first = end_earlier(dir.path()).await;
        for (n, name) in ["git", "task"].into_iter().enumerate() {
            let at = end_earlier(dir.path()).await;
            assert_eq!(at, dir.path().join(format!("write-{n}")));
            std::fs::create_dir_all(at.join(name)).unwrap();
        }
        assert_eq!(first, dir.path().join("write-0"));
        assert_eq!(end_earlier(dir.path()).await, dir.path().join("write-2"));
        // What an earlier daemon did not start, it cannot start any more.
        let task = dir.path().join("write-0/task");
        assert!(matches!(task::find(&task, None), Ok(Found::NeverStarted)));
    }
}
