//! Begins a restore or its undo: reads what is at each path, finds conflicts, and records the plan.

use super::git::{self, Object};
use super::sandbox::ToolSandbox;
use super::worker::{self, FoundPath};
use super::{carry_out, contents, named, nothing, reach};
use crate::clock;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::{Error, Kind, Result};
use crate::lifecycle::ops::Asked;
use crate::spawn::blocking;
use agentd_client::api::{
    AgentRef, CannotRestore, FileOutcome, FilesOutcome, NotRestored, RestoredFile, RestoredFiles,
};
use agentd_core::event::{
    Body, FileKept, FileState, FilesPlan, FilesRestoreBegan, KeptBy, MAX_KEPT_BYTES, NotKept, Oid,
    PlannedFile, Position, RestoreOutcome, RestoreTarget,
};
use agentd_core::files::work::{Found, Work};
use agentd_core::files::{Compared, KINDS, RestorePlan, Target, Wanted, compare};
use agentd_core::id::{OpId, Seq};
use agentd_failpoint as failpoint;
use agentd_store::{ReadQuery, Texts};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a restore waits until the files that commands changed are found.
const SCAN: Duration = Duration::from_secs(5);

/// What is to be begun.
pub struct Begin<'a> {
    pub op: OpId,
    pub undo_of: Option<OpId>,
    /// The position whose files are restored.
    pub to: Option<Seq>,
    pub plan: RestorePlan,
    /// The head of the journal that the plan was made from.
    pub head: Seq,
    pub overwrite: bool,
    pub dry_run: bool,
    pub asked: &'a Asked,
}

/// What is to be done, after the files were read.
#[derive(Default)]
struct Resolved {
    files: Vec<PlannedFile>,
    kept: Vec<FileKept>,
    conflicts: Vec<RestoredFile>,
    not_restored: Vec<NotRestored>,
}

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
    let begun = try_begin(handle, sandbox, &begin, &dir).await;
    carry_out::remove(dir).await;
    match begun? {
        Begun::Answered(answer) => Ok(answer),
        Begun::Began(not_restored) => carry_out::ended(handle, begin.op, not_restored).await,
    }
}

async fn make(handle: &AgentHandle, dir: &Path) -> Result<()> {
    let (layout, owner, at) = (handle.daemon.layout.clone(), handle.id, dir.to_owned());
    let made = blocking(move || layout.make_owned_dir(&at, Some(owner))).await;
    made.map_err(|error| contents::unwritable(&error))
}

/// The result of the first steps.
enum Begun {
    /// Nothing is written.
    Answered(RestoredFiles),
    /// The plan is recorded. This is what it leaves as it is.
    Began(Vec<NotRestored>),
}

async fn try_begin(
    handle: &AgentHandle,
    sandbox: &ToolSandbox,
    begin: &Begin<'_>,
    dir: &Path,
) -> Result<Begun> {
    let limit = sandbox.kept_limit();
    // With contents, of a dry run too: it tells which of them cannot be kept.
    let work = Work::Read {
        paths: begin.plan.wanted.iter().map(|it| it.path.clone()).collect(),
        largest: limit.min(MAX_KEPT_BYTES),
    };
    let found = match begin.plan.wanted.is_empty() {
        true => BTreeMap::new(),
        false => worker::read(sandbox, &dir.join("read"), &work).await?,
    };
    let objects = objects(&begin.plan);
    let of_git = git::contents(sandbox, &dir.join("git"), objects).await?;
    let hashes = blocking(move || hashes(of_git)).await;
    let resolved = resolve(handle, begin, found, (&hashes, sandbox));
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
            record(handle, begin, Resolved::default()).await?;
        }
        answer(nothing::outcome(&resolved.not_restored), Vec::new())
    } else if begin.dry_run {
        let planned = resolved.files.iter().map(|file| RestoredFile {
            path: file.path.clone(),
            outcome: FileOutcome::Planned,
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
        to: begin.to,
        files: resolved.files.len() as u64,
        kept_bytes: resolved.kept.iter().map(FileKept::counted_bytes).sum(),
    };
    // Without files it has ended when it begins.
    let is_over = resolved.files.is_empty();
    let over = is_over.then(|| carry_out::over(begin.op, RestoreOutcome::Done, Vec::new()));
    let plan = FilesPlan {
        op: begin.op,
        files: resolved.files,
    };
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

/// The objects of the repository that may have contents of the plan.
fn objects(plan: &RestorePlan) -> Vec<Object> {
    let objects = plan.wanted.iter().flat_map(|wanted| match &wanted.target {
        Target::Git { objects, .. } => {
            let path = &wanted.path;
            let objects = objects.iter();
            objects
                .map(|(oid, _)| (oid.clone(), path.clone()))
                .collect()
        }
        Target::Kept { .. } => Vec::new(),
    });
    objects.collect()
}

/// The hashes of contents, by object and path.
fn hashes(contents: BTreeMap<(Oid, String), PathBuf>) -> BTreeMap<(Oid, String), String> {
    let hashes = contents.into_iter().filter_map(|(object, file)| {
        let mut file = git::open(&file).ok()?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match file.read(&mut buffer).ok()? {
                0 => break,
                read => hasher.update(buffer.get(..read)?),
            }
        }
        let hash = hasher.finalize();
        let hash = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Some((object, hash))
    });
    hashes.collect()
}

fn resolve(
    handle: &AgentHandle,
    begin: &Begin<'_>,
    mut found: BTreeMap<String, FoundPath>,
    (hashes, sandbox): (&BTreeMap<(Oid, String), String>, &ToolSandbox),
) -> Resolved {
    let mut resolved = Resolved {
        not_restored: begin.plan.not_restored.clone(),
        ..Resolved::default()
    };
    let mut room = sandbox.room();
    let mut wrong = Vec::new();
    for wanted in &begin.plan.wanted {
        let path = &wanted.path;
        let Some(mut seen) = found.remove(path) else {
            wrong.push((path, CannotRestore::CurrentUnreadable));
            continue;
        };
        seen.withhold(&sandbox.secrets);
        let conflict = |why: String| RestoredFile {
            path: path.clone(),
            outcome: FileOutcome::Conflict,
            why: Some(why),
        };
        let now = match &seen.found {
            Found::Known { state, .. } => state.clone(),
            Found::Other { what } if begin.overwrite => {
                tracing::debug!(path, what, "not restored");
                wrong.push((path, CannotRestore::NotAFile));
                continue;
            }
            Found::Other { what } => {
                resolved
                    .conflicts
                    .push(conflict(format!("it is {what} now")));
                continue;
            }
            Found::Failed { .. } => {
                wrong.push((path, CannotRestore::CurrentUnreadable));
                continue;
            }
        };
        let Some((state, target)) = concrete(handle, wanted, &now, hashes) else {
            wrong.push((path, CannotRestore::NotInGit));
            continue;
        };
        match compare(&now, &state, &wanted.expected) {
            Compared::Same => continue,
            Compared::Changed if !begin.overwrite => {
                let why = "it was changed by something else than the agent";
                resolved.conflicts.push(conflict(why.to_owned()));
                continue;
            }
            Compared::Changed | Compared::AsLeft => {}
        }
        // A restore keeps all that it replaces, or leaves it as it is.
        let not_kept = seen.not_kept().or_else(|| {
            let fits = room.take(seen.size());
            (!fits).then_some(NotKept::TooLarge)
        });
        if let Some(why) = not_kept {
            wrong.push((path, unkept(why)));
            continue;
        }
        let by = KeptBy::Restore { op: begin.op };
        resolved.kept.extend(seen.kept(&by, path));
        resolved.files.push(PlannedFile {
            path: path.clone(),
            target,
            expected: now,
        });
    }
    let wrong = wrong.into_iter().map(|(path, why)| NotRestored {
        path: Some(path.clone()),
        turn: None,
        why,
    });
    resolved.not_restored.extend(wrong);
    resolved
}

/// Why a restore does not replace a content that cannot be kept.
const fn unkept(why: NotKept) -> CannotRestore {
    match why {
        NotKept::TooLarge => CannotRestore::CurrentTooLarge,
        NotKept::Unreadable => CannotRestore::CurrentUnreadable,
        NotKept::Secret => CannotRestore::CurrentSecret,
    }
}

/// The state that a path is to get, and where its content is. None if the repository does not have it.
fn concrete(
    handle: &AgentHandle,
    wanted: &Wanted,
    now: &FileState,
    hashes: &BTreeMap<(Oid, String), String>,
) -> Option<(FileState, RestoreTarget)> {
    match &wanted.target {
        Target::Kept { at, state, .. } => {
            let at = Position {
                agent: handle.id,
                seq: *at,
            };
            let target = RestoreTarget::Kept {
                at,
                state: Some(state.clone()),
            };
            Some((state.clone(), target))
        }
        Target::Git { objects, .. } => {
            let known = objects.iter().filter_map(|(oid, _)| {
                let hash = hashes.get(&(oid.clone(), wanted.path.clone()))?;
                Some((oid.clone(), hash.clone()))
            });
            let (oid, mode, hash) = wanted.target.object(&known.collect())?;
            let state = git::state(mode, &hash, now);
            Some((state, RestoreTarget::Git { oid, mode, hash }))
        }
    }
}
