//! Begins a restore or its undo: reads what is at each path, finds conflicts, and records the plan.

use super::ask::Begin;
use super::git;
use super::resolve::{self, KnownToGit, Resolved};
use super::sandbox::ToolSandbox;
use super::{answer, carry_out, contents, named, nothing, reach, unchanged, worker};
use crate::clock;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::{Error, Kind, Result};
use crate::spawn::blocking;
use agentd_client::api::{
    AgentRef, FileOutcome, FilesOutcome, NotRestored, RestoredFile, RestoredFiles,
};
use agentd_core::event::{
    Body, FileKept, FilesPlan, FilesRestoreBegan, MAX_KEPT_BYTES, PlannedFile, RestoreOutcome,
};
use agentd_core::files::KINDS;
use agentd_core::files::work::{HASHED_BYTES, Work};
use agentd_core::id::{OpId, Seq};
use agentd_failpoint as failpoint;
use agentd_store::{MAX_EVENT_BYTES, ReadQuery, Texts};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// How long a restore waits until the files that commands changed are found.
const SCAN: Duration = Duration::from_secs(5);

/// Whether files may be restored now.
pub fn check(guard: &AgentGuard<'_>) -> Result<()> {
    guard.check_released()?;
    guard.check_active()?;
    let (state, name) = (&guard.state, &guard.state.name);
    let conflict = |what: String| Error::new(Kind::Conflict, what);
    if state.turn.is_some() {
        let error = conflict(format!("a turn of `{name}` is running"));
        return Err(error.next(format!("`agentd interrupt {name}`, or wait for its end")));
    }
    if state.resets.under_way().is_some() {
        return Err(conflict(format!("`{name}` is being reset")).next("try again in a moment"));
    }
    if state.files.restoring.is_some() {
        let error = conflict(format!("files of `{name}` are being restored"));
        return Err(error.next("try again in a moment"));
    }
    Ok(())
}

/// Waits until it is known which files the commands of the last turn changed.
pub async fn wait_scanned(handle: &AgentHandle) {
    let scanned = handle.within(SCAN, |guard| {
        let is_coming = guard.process.is_some() && guard.state.turn.is_none();
        let is_open = guard.state.files.unscanned.is_some() && is_coming;
        (!is_open).then_some(())
    });
    // Without it, changes by those commands are listed as unknown.
    let _late = scanned.await;
}

pub async fn begin(
    handle: &AgentHandle,
    sandbox: &ToolSandbox,
    mut begin: Begin<'_>,
) -> Result<RestoredFiles> {
    begin.plan = reach::plan(sandbox, begin.plan).await?;
    // A directory of this request: a repeated one may read at the same time.
    let op = OpId::new(clock::new_id());
    let dir = handle.daemon.layout.restore_dir(handle.id, op);
    make(handle, &dir).await?;
    let begun = match unchanged::look(sandbox, &dir, &mut begin).await {
        Ok(conflicts) => try_begin(handle, sandbox, &begin, (&dir, conflicts)).await,
        Err(error) => Err(error),
    };
    carry_out::remove(dir).await;
    match begun? {
        Begun::Answered(answer) => Ok(answer),
        Begun::Began(not_restored) => {
            let ended = answer::ended(handle, begin.op).await?;
            // Another request with this op may have begun the restore.
            let left = ended.left().unwrap_or(not_restored);
            Ok(ended.answer(handle, begin.op, left).await)
        }
    }
}

pub async fn make(handle: &AgentHandle, dir: &Path) -> Result<()> {
    let (layout, owner, at) = (handle.daemon.layout.clone(), handle.id, dir.to_owned());
    let made = blocking(move || layout.make_owned_dir(&at, Some(owner))).await;
    made.map_err(|error| contents::unwritable(&error))
}

/// The result of the first steps.
enum Begun {
    /// Nothing is written.
    Answered(RestoredFiles),
    /// The plan is recorded. This is what it leaves as it is, unless the plan has a list of that.
    Began(Vec<NotRestored>),
}

async fn try_begin(
    handle: &AgentHandle,
    sandbox: &ToolSandbox,
    begin: &Begin<'_>,
    (dir, conflicts): (&Path, Vec<RestoredFile>),
) -> Result<Begun> {
    let limit = sandbox.kept_limit();
    // With contents, of a dry run too: it tells which of them cannot be kept.
    let work = Work::Read {
        paths: begin.plan.wanted.iter().map(|it| it.path.clone()).collect(),
        largest: limit.min(MAX_KEPT_BYTES),
        hashed: HASHED_BYTES,
    };
    let found = match begin.plan.wanted.is_empty() {
        true => BTreeMap::new(),
        false => worker::read(sandbox, &dir.join("read"), &work).await?,
    };
    let objects = resolve::objects(&begin.plan);
    let at = dir.join("git");
    let of_git = git::contents(sandbox, &at, objects, git::TIME_OF_RESTORE).await?;
    let known = blocking(move || KnownToGit::new(of_git)).await;
    let mut resolved = resolve::resolve(begin, found, (&known, sandbox));
    resolved.conflicts.extend(conflicts);
    resolved.conflicts.sort_by(|a, b| a.path.cmp(&b.path));
    if !begin.dry_run && begin.asked.is_made(&handle.lock().await.state)? {
        // An earlier request with this op has begun while this one read. It may have written what was found.
        return Ok(Begun::Began(resolved.not_restored));
    }
    let answer = |outcome, files| RestoredFiles {
        agent: AgentRef {
            id: handle.id,
            name: None,
        },
        op: begin.op,
        outcome,
        files,
        not_restored: resolved.not_restored.clone(),
        undo: None,
    };
    let answer = if !resolved.conflicts.is_empty() {
        answer(FilesOutcome::Conflict, resolved.conflicts)
    } else if resolved.files.is_empty() {
        let is_undone = begin.undo_of.is_some() && nothing::is_over(&resolved.not_restored);
        if is_undone && !begin.dry_run {
            // Otherwise the next undo would find the same restore again.
            let without_files = Resolved {
                not_restored: resolved.not_restored.clone(),
                ..Resolved::default()
            };
            record(handle, begin, without_files).await?;
        }
        answer(nothing::outcome(&resolved.not_restored), Vec::new())
    } else if begin.dry_run {
        let planned = resolved.files.iter().map(|file| RestoredFile {
            path: file.path.clone(),
            outcome: FileOutcome::Planned,
            action: answer::action(&file.target),
            why: None,
        });
        answer(FilesOutcome::Planned, planned.collect())
    } else {
        let not_restored = resolved.not_restored.clone();
        record(handle, begin, resolved).await?;
        return Ok(Begun::Began(not_restored));
    };
    Ok(Begun::Answered(RestoredFiles {
        agent: named(handle).await,
        ..answer
    }))
}

/// The plan and what is at its paths now, in one commit. From here on the restore is completed after any crash.
async fn record(handle: &AgentHandle, begin: &Begin<'_>, resolved: Resolved) -> Result<()> {
    let mut guard = handle.lock().await;
    if begin.asked.is_made(&guard.state)? {
        // By an earlier request with this op, while this one read.
        return Ok(());
    }
    check(&guard)?;
    if has_worked(handle, begin.head).await? {
        let what = "the agent has worked while its files were read";
        return Err(Error::new(Kind::Conflict, what).next("try again"));
    }
    let began = FilesRestoreBegan {
        op: begin.op,
        undo_of: begin.undo_of,
        to: begin.to.map(|to| to.seq),
        to_in: begin
            .to
            .map(|to| to.agent)
            .filter(|agent| *agent != handle.id),
        files: resolved.files.len() as u64,
        kept_bytes: resolved.kept.iter().map(FileKept::counted_bytes).sum(),
    };
    // Without files it has ended when it begins.
    let is_over = resolved.files.is_empty();
    let over = is_over.then(|| carry_out::over(begin.op, RestoreOutcome::Done, Vec::new()));
    let plan = plan(begin.op, resolved.files, resolved.not_restored);
    let bodies: [Body; 2] = [began.into(), plan.into()];
    let kept = resolved.kept.into_iter().map(Body::from);
    let op = begin.asked.line();
    if !is_over {
        // Before the begin: the next daemon finds the restore by its directory.
        let dir = handle.daemon.layout.restore_dir(handle.id, begin.op);
        make(handle, &dir).await?;
    }
    failpoint::hit("before", "files_restore_began");
    let over = over.into_iter().flatten();
    let all = bodies.into_iter().chain(kept).chain(over).chain(op);
    guard.note(all).await?;
    failpoint::hit("after", "files_restore_began");
    guard.reconcile();
    Ok(())
}

/// The plan as it is recorded: with the list of what is left as it is, if one event can have both.
fn plan(op: OpId, files: Vec<PlannedFile>, left: Vec<NotRestored>) -> FilesPlan {
    let plan = FilesPlan {
        op,
        files,
        not_restored: NotRestored::recorded(left),
    };
    let json = serde_json::to_vec(&plan);
    match json.is_ok_and(|json| json.len() <= MAX_EVENT_BYTES) {
        true => plan,
        false => FilesPlan {
            not_restored: None,
            ..plan
        },
    }
}

/// Whether an event after `head` could change the plan.
async fn has_worked(handle: &AgentHandle, head: Seq) -> Result<bool> {
    let query = ReadQuery {
        kinds: KINDS,
        texts: Texts::WithoutLong,
        ..ReadQuery::all(handle.id, head, 1)
    };
    let page = handle.daemon.store.read(query).await?;
    Ok(!page.events.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_client::api::CannotRestore;
    use agentd_core::event::{FileState, RestoreTarget};

    const MIB: usize = 1024 * 1024;

    fn planned(path: String) -> PlannedFile {
        PlannedFile {
            path,
            target: RestoreTarget::Mode {
                mode: 0o644,
                hash: String::new(),
            },
            expected: FileState::Absent,
        }
    }

    /// Regression: the list had a limit of its own, and a restore with a large plan and a large list could not begin.
    #[test]
    fn a_list_that_does_not_fit_into_the_event_of_the_plan_is_not_recorded() {
        let op = OpId::from_bytes([1; 16]);
        // Almost 8 MiB as JSON, because each byte becomes an escape of six.
        let left = vec![NotRestored::new(
            Some("\u{1}".repeat(5 * MIB / 4)),
            None,
            CannotRestore::NotInGit,
        )];
        for (files, expected) in [(20, Some(left.clone())), (26, None)] {
            let files = vec![planned("x".repeat(MIB)); files];
            let plan = plan(op, files.clone(), left.clone());
            assert_eq!(plan.files.len(), files.len());
            assert!(plan.not_restored == expected, "{} files", files.len());
            assert!(serde_json::to_vec(&plan).unwrap().len() <= MAX_EVENT_BYTES);
        }
    }
}
