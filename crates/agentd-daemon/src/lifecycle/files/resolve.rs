//! What a restore is to do, from the plan, what is at its paths, and what git has.

use super::ask::Begin;
use super::git::{self, GitContents, Object};
use super::sandbox::ToolSandbox;
use super::worker::FoundPath;
use agentd_client::api::{CannotRestore, FileOutcome, NotRestored, RestoredFile};
use agentd_core::event::{FileKept, FileState, KeptBy, NotKept, Oid, PlannedFile, RestoreTarget};
use agentd_core::files::work::Found;
use agentd_core::files::{Compared, MustAsk, RestorePlan, Target, Wanted, compare};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::PathBuf;

/// Why a path is a conflict.
pub const CHANGED: &str = "it was changed by something else than the agent";
const NOT_READ: &str = "agentd could not check whether it was changed since";
const GUESS: &str = "its content before this turn is not known; git's copy would be used";
const DELETED: &str = "it may have been deleted before this turn; git's copy would be used";
const UNCOMMITTED: &str =
    "it had changes before this turn that were not committed; git's copy would be used";
const BACKGROUND: &str = "it may have been changed by something else than the agent";

/// What git told about the objects of a plan.
pub struct KnownToGit {
    /// Of contents, by object and path.
    hashes: BTreeMap<Object, String>,
    late: BTreeSet<Object>,
}

impl KnownToGit {
    /// Reads the contents.
    pub fn new(contents: GitContents) -> Self {
        Self {
            hashes: hashes(contents.files),
            late: contents.late,
        }
    }

    /// Whether git was not done with an object of the target: another one is not used instead.
    fn is_late(&self, wanted: &Wanted) -> bool {
        let mut oids = oids(&wanted.target).into_iter();
        oids.any(|oid| self.late.contains(&(oid, wanted.path.clone())))
    }
}

/// What is to be done, after the files were read.
#[derive(Default)]
pub struct Resolved {
    pub files: Vec<PlannedFile>,
    pub kept: Vec<FileKept>,
    pub conflicts: Vec<RestoredFile>,
    pub not_restored: Vec<NotRestored>,
}

/// The objects of the repository that may have contents of the plan.
pub fn objects(plan: &RestorePlan) -> Vec<Object> {
    let objects = plan.wanted.iter().flat_map(|wanted| {
        let oids = oids(&wanted.target).into_iter();
        oids.map(|oid| (oid, wanted.path.clone()))
    });
    objects.collect()
}

/// The objects of the repository that may have the content of a target.
pub fn oids(target: &Target) -> Vec<Oid> {
    match target {
        Target::Git { objects, .. } => objects.iter().map(|(oid, _)| oid.clone()).collect(),
        Target::Kept { .. } | Target::Mode { .. } => Vec::new(),
    }
}

/// The hashes of contents, by object and path.
pub fn hashes(contents: BTreeMap<(Oid, String), PathBuf>) -> BTreeMap<(Oid, String), String> {
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

pub fn resolve(
    begin: &Begin<'_>,
    mut found: BTreeMap<String, FoundPath>,
    (git, sandbox): (&KnownToGit, &ToolSandbox),
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
            action: None,
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
            Found::Blocked { .. } if begin.overwrite => {
                wrong.push((path, CannotRestore::ParentReplaced));
                continue;
            }
            Found::Blocked { what } => {
                resolved.conflicts.push(conflict(format!("{what} now")));
                continue;
            }
            Found::Failed { size: Some(_), .. } => {
                wrong.push((path, CannotRestore::CurrentTooLarge));
                continue;
            }
            Found::Failed { .. } => {
                wrong.push((path, CannotRestore::CurrentUnreadable));
                continue;
            }
        };
        if git.is_late(wanted) {
            wrong.push((path, CannotRestore::GitLate));
            continue;
        }
        let Some((state, target)) = concrete(wanted, &now, &git.hashes) else {
            wrong.push((path, CannotRestore::NotInGit));
            continue;
        };
        match compare(&now, &state, &wanted.expected) {
            Compared::Same => continue,
            Compared::Changed if !begin.overwrite => {
                let why = match wanted.is_left_known() {
                    true => CHANGED,
                    false => NOT_READ,
                };
                resolved.conflicts.push(conflict(why.to_owned()));
                continue;
            }
            Compared::Changed | Compared::AsLeft => {}
        }
        let must_ask = wanted.must_ask(&state, &now).filter(|_| !begin.overwrite);
        if let Some(must_ask) = must_ask {
            resolved.conflicts.push(conflict(why(must_ask).to_owned()));
            continue;
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
    let wrong = wrong.into_iter();
    let wrong = wrong.map(|(path, why)| NotRestored::new(Some(path.clone()), None, why));
    resolved.not_restored.extend(wrong);
    resolved
}

/// Why a path that is as the agent left it is a conflict.
const fn why(must_ask: MustAsk) -> &'static str {
    match must_ask {
        MustAsk::Uncommitted => UNCOMMITTED,
        MustAsk::Unknown => GUESS,
        MustAsk::Deleted => DELETED,
        MustAsk::Background => BACKGROUND,
    }
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
    wanted: &Wanted,
    now: &FileState,
    hashes: &BTreeMap<(Oid, String), String>,
) -> Option<(FileState, RestoreTarget)> {
    match &wanted.target {
        Target::Kept { at, state, .. } => {
            let target = RestoreTarget::Kept {
                at: *at,
                state: Some(state.clone()),
            };
            Some((state.clone(), target))
        }
        Target::Mode { mode, hash } => {
            // Only what is there has the content.
            let is_there = matches!(now, FileState::File { hash: known, .. } if known == hash);
            let (mode, hash) = (*mode, hash.clone());
            let state = FileState::File {
                mode,
                hash: hash.clone(),
            };
            is_there.then_some((state, RestoreTarget::Mode { mode, hash }))
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
