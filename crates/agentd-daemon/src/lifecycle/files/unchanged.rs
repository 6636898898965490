//! Looks at the paths that the agent has not changed after the position of a restore: something else may have changed
//! them.

use super::ask::Begin;
use super::resolve::CHANGED;
use super::sandbox::ToolSandbox;
use super::worker;
use crate::error::Result;
use agentd_client::api::{CannotRestore, FileOutcome, NotRestored, RestoredFile};
use agentd_core::files::work::{Found, HASHED_BYTES, Work};
use agentd_core::files::{ComparedUnchanged, RestorePlan, Unchanged, Wanted};
use std::path::Path;

/// Returns the conflicts. With `overwrite`, the paths that differ become part of the plan, or are named with the reason
/// why they cannot be restored.
pub async fn look(
    sandbox: &ToolSandbox,
    dir: &Path,
    begin: &mut Begin<'_>,
) -> Result<Vec<RestoredFile>> {
    let unchanged = std::mem::take(&mut begin.plan.unchanged);
    if unchanged.is_empty() {
        return Ok(Vec::new());
    }
    // Their hashes are enough: a content that is to be replaced is read with those of the plan.
    let work = Work::Read {
        paths: unchanged.iter().map(|it| it.path.clone()).collect(),
        largest: 0,
        hashed: HASHED_BYTES,
    };
    let found = worker::read(sandbox, &dir.join("look"), &work).await?;
    let mut conflicts = Vec::new();
    for it in unchanged {
        let found = found.get(&it.path).map(|found| &found.found);
        conflicts.extend(decide(&mut begin.plan, it, found, begin.overwrite));
    }
    begin.plan.wanted.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(conflicts)
}

fn decide(
    plan: &mut RestorePlan,
    unchanged: Unchanged,
    found: Option<&Found>,
    overwrite: bool,
) -> Option<RestoredFile> {
    let mut not_restored = |path: String, why: CannotRestore| {
        plan.not_restored
            .push(NotRestored::new(Some(path), None, why));
    };
    let conflict = |path: String, why: String| RestoredFile {
        path,
        outcome: FileOutcome::Conflict,
        action: None,
        why: Some(why),
    };
    if let Some(Found::Failed { size: Some(_), .. }) = found {
        not_restored(unchanged.path, CannotRestore::CurrentTooLarge);
        return None;
    }
    let cannot = unchanged.cannot_restore();
    match unchanged.compare(found) {
        ComparedUnchanged::Same => None,
        ComparedUnchanged::NotChecked => {
            not_restored(unchanged.path, CannotRestore::NotChecked);
            None
        }
        ComparedUnchanged::NotAFile(why) if !overwrite => Some(conflict(unchanged.path, why)),
        ComparedUnchanged::Changed if !overwrite => {
            Some(conflict(unchanged.path, CHANGED.to_owned()))
        }
        ComparedUnchanged::NotAFile(_) => {
            let is_above = matches!(found, Some(Found::Blocked { .. }));
            let why = match is_above {
                true => CannotRestore::ParentReplaced,
                false => CannotRestore::NotAFile,
            };
            not_restored(unchanged.path, why);
            None
        }
        ComparedUnchanged::Changed => {
            match (unchanged.target, cannot) {
                (Some(target), _) => plan.wanted.push(Wanted {
                    path: unchanged.path,
                    target,
                    expected: Vec::new(),
                    unsure: false,
                }),
                (None, why) => {
                    let why = why.unwrap_or(CannotRestore::LeftNotKept);
                    not_restored(unchanged.path, why);
                }
            }
            None
        }
    }
}
