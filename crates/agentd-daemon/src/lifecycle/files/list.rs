//! The files that an agent has changed.

use super::{history, named, position};
use crate::daemon::AgentHandle;
use crate::error::Result;
use agentd_client::api::{ChangeBy, ChangedFile, ChangedFiles, FileChanged, FilesQuery};
use agentd_core::files::{self, Change, ChangedBy, IsDone, Selection};
use agentd_core::id::Seq;
use std::collections::BTreeMap;

pub async fn list(handle: &AgentHandle, query: FilesQuery) -> Result<ChangedFiles> {
    super::begin::wait_scanned(handle).await;
    let state = handle.lock().await.state.clone();
    let since = match &query.since {
        Some(called) => position(handle, &state, None, called).await?,
        None => Seq::ZERO,
    };
    let history = history(&handle.daemon, handle.id, state.head).await?;
    let plan = files::restore(&history, since, &Selection::default());
    let mut paths: BTreeMap<&str, Vec<FileChanged>> = BTreeMap::new();
    let made = history.changes().iter();
    let made = made.filter(|change| change.seq > since && change.done != IsDone::No);
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
    let files = paths.into_iter().map(|(path, changes)| {
        let mut cannot = plan.not_restored.iter();
        let cannot = cannot.find(|it| it.path.as_deref() == Some(path));
        ChangedFile {
            path: path.to_owned(),
            changes,
            cannot_restore: cannot.map(|it| it.why),
        }
    });
    let unknown = plan.not_restored.iter().filter(|it| it.path.is_none());
    Ok(ChangedFiles {
        agent: named(handle).await,
        files: files.collect(),
        unknown: unknown.cloned().collect(),
        undo_levels: state.files.undo_stack().len(),
        kept_bytes: state.files.kept_bytes,
        limit_bytes: state.spec.limits.file_history_bytes(),
    })
}

pub const fn by(change: &Change) -> ChangeBy {
    match change.by {
        ChangedBy::Call(_) => ChangeBy::Tool,
        ChangedBy::Command(_) => ChangeBy::Command,
        ChangedBy::Restore(_) => ChangeBy::Restore,
    }
}
