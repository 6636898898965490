//! Takes a restore back: each path gets the state that the restore kept.

use super::change::{ChangedBy, Earlier, IsDone};
use super::history::History;
use super::plan::left_by;
use super::select::Selection;
use super::target::{RestorePlan, Target, Wanted};
use crate::event::{CannotRestore, NotRestored};
use crate::id::OpId;
use std::collections::BTreeSet;

/// Takes back what a restore did to the selected paths. A path whose kept state was purged is named.
pub fn undo(history: &History, op: OpId, selection: &Selection) -> RestorePlan {
    let mut plan = RestorePlan::default();
    let mut kept = BTreeSet::new();
    let changes = history.changes().iter();
    for change in changes.filter(|it| it.by == ChangedBy::Restore(op) && selection.has(&it.path)) {
        kept.insert(change.path.as_str());
        if change.done == IsDone::No {
            continue;
        }
        match &change.before {
            Earlier::Kept { at, state, size } => plan.wanted.push(Wanted {
                path: change.path.clone(),
                target: Target::Kept {
                    at: *at,
                    state: state.clone(),
                    size: *size,
                },
                expected: left_by(change),
                unsure: false,
            }),
            Earlier::NotKept(why) => {
                let path = Some(change.path.clone());
                let not_restored = NotRestored::new(path, None, (*why).into());
                plan.not_restored.push(not_restored);
            }
            Earlier::Git(_) => {}
        }
    }
    let planned = history.plan(op);
    let purged = planned.iter().flat_map(|plan| &plan.files);
    let purged = purged.filter(|file| !kept.contains(file.path.as_str()));
    let purged = purged.filter(|file| selection.has(&file.path));
    plan.not_restored.extend(purged.map(|file| {
        let path = Some(file.path.clone());
        NotRestored::new(path, None, CannotRestore::NoLongerKept)
    }));
    if planned.is_none() && plan.wanted.is_empty() && plan.not_restored.is_empty() {
        let unknown = NotRestored::new(None, None, CannotRestore::NoLongerKept);
        plan.not_restored.push(unknown);
    }
    plan.wanted.sort_by(|a, b| a.path.cmp(&b.path));
    plan
}
