//! The files that an agent has changed.

use super::{history, lineage, named, names, of_background, order, position};
use crate::daemon::AgentHandle;
use crate::error::Result;
use agentd_client::api::{
    ChangeBy, ChangedFile, ChangedFiles, FileChanged, FilesQuery, NotRestored,
};
use agentd_core::files::{self, Change, ChangedBy, History, Order, Selection};
use agentd_core::state::AgentState;
use std::collections::BTreeMap;

pub async fn list(handle: &AgentHandle, query: FilesQuery) -> Result<ChangedFiles> {
    super::begin::wait_scanned(handle).await;
    let state = handle.lock().await.state.clone();
    let ancestors = lineage::ancestors(handle, &state).await?;
    let since = match &query.since {
        Some(called) => Some(position(handle, &state, &ancestors, (None, called.as_str())).await?),
        None => None,
    };
    let history = history(handle, &state, &ancestors, state.head).await?;
    let since = since.map_or(Order::BEGINNING, |at| order(&history, at));
    let mut plan = files::restore(&history, since, &Selection::default());
    plan.not_restored.extend(of_background(&state));
    names::number(handle, &state, &history, &mut plan.not_restored).await?;
    let mut paths: BTreeMap<&str, Vec<FileChanged>> = BTreeMap::new();
    let made = history.changes().iter();
    let made = made.filter(|change| change.order > since && change.done.is_listed());
    for change in made {
        let changed = FileChanged {
            by: by(change),
            turn: change.turn,
            at: change.at,
            change: match change.by {
                ChangedBy::Command(how) => Some(how),
                _ => None,
            },
        };
        paths.entry(&change.path).or_default().push(changed);
    }
    // Of some paths only that they were changed is known: their contents were purged.
    let is_listed = |path: &String| paths.contains_key(path.as_str());
    let unknown = plan.not_restored.iter();
    let unknown = unknown.filter(|it| !it.path.as_ref().is_some_and(is_listed));
    let unknown: Vec<NotRestored> = unknown.cloned().collect();
    let files = paths.into_iter().map(|(path, changes)| {
        let mut cannot = plan.not_restored.iter();
        let cannot = cannot.find(|it| it.path.as_deref() == Some(path));
        ChangedFile {
            path: path.to_owned(),
            changes,
            cannot_restore: cannot.map(|it| it.why),
            cannot_restore_turn: cannot.and_then(|it| it.turn_number),
        }
    });
    Ok(ChangedFiles {
        agent: named(handle).await,
        files: files.collect(),
        unknown,
        undo_levels: undo_levels(&state, &history),
        kept_bytes: state.files.kept_bytes,
        limit_bytes: state.spec.limits.file_history_bytes(),
    })
}

/// How many restores can be taken back, the newest first. What some of them kept was purged.
fn undo_levels(state: &AgentState, history: &History) -> usize {
    let stack = state.files.undo_stack();
    let kept = stack.filter(|restore| {
        let undo = files::undo(history, restore.op, &Selection::default());
        !undo.wanted.is_empty()
    });
    kept.count()
}

pub const fn by(change: &Change) -> ChangeBy {
    match change.by {
        ChangedBy::Call(_) => ChangeBy::Tool,
        ChangedBy::Command(_) => ChangeBy::Command,
        ChangedBy::Restore(_) => ChangeBy::Restore,
    }
}
