//! Takes the last restore of files back that was not taken back yet.

use super::ask::Begin;
use super::sandbox::ToolSandbox;
use super::{answer, begin, carry_out, history, reach};
use crate::clock;
use crate::daemon::AgentHandle;
use crate::error::Result;
use crate::lifecycle::ops::Asked;
use agentd_client::api::{NotRestored, RestoredFiles, UndoFiles};
use agentd_core::event::OpVerb;
use agentd_core::files::{self, Selection};
use agentd_core::id::{OpId, Seq};
use agentd_core::state::AgentState;

pub async fn undo(handle: &AgentHandle, ask: UndoFiles) -> Result<RestoredFiles> {
    let op = ask.op.unwrap_or_else(|| OpId::new(clock::new_id()));
    let asked = Asked::new(Some(op), OpVerb::UndoFiles, &ask.overwrite)?;
    begin::wait_scanned(handle).await;
    let guard = handle.lock().await;
    let made = asked.made(&guard.state)?.map(|made| made.seq);
    if made.is_none() && !ask.dry_run {
        begin::check(&guard)?;
    }
    let state = guard.state.clone();
    drop(guard);
    if let Some(recorded) = made {
        let ended = answer::ended(handle, op).await?;
        let left = match ended.left() {
            Some(left) => left,
            None => planned_again(handle, &state, &ask, (op, recorded)).await?,
        };
        return Ok(ended.answer(handle, op, left).await);
    }
    let sandbox = ToolSandbox::of(handle, &ask.env).await;
    let Some(last) = state.files.undo_stack().next().copied() else {
        return Err(carry_out::nothing(&state.name));
    };
    // Only what the agent's own journal records can be taken back.
    let history = history(handle, &state, &[], state.head).await?;
    let begin = Begin {
        op,
        undo_of: Some(last.op),
        to: None,
        plan: files::undo(&history, last.op, &Selection::default()),
        head: state.head,
        overwrite: ask.overwrite,
        dry_run: ask.dry_run,
        asked: &asked,
    };
    begin::begin(handle, &sandbox, begin).await
}

/// What an undo could not take back, as far as the journal before it tells: its plan has no list.
async fn planned_again(
    handle: &AgentHandle,
    state: &AgentState,
    ask: &UndoFiles,
    (op, recorded): (OpId, Seq),
) -> Result<Vec<NotRestored>> {
    let began = answer::began(handle, op, recorded).await?;
    let undone = began.and_then(|(began, at)| Some((began.undo_of?, at)));
    let Some((undone, at)) = undone else {
        return Ok(Vec::new());
    };
    let history = history(handle, state, &[], at).await?;
    let plan = files::undo(&history, undone, &Selection::default());
    let sandbox = ToolSandbox::of(handle, &ask.env).await;
    Ok(reach::plan(&sandbox, plan).await?.not_restored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::tests::bed;
    use agentd_client::api::{CannotRestore, FilesOutcome};
    use agentd_core::event::{
        Body, FileState, FilesPlan, FilesRestoreBegan, PlannedFile, RestoreOutcome, RestoreTarget,
        RestoredFile, RestoredOutcome,
    };

    /// A restore of these files, from its begin to its end. Its plan has no list of what was left.
    fn restored(op: OpId, undo_of: Option<OpId>, paths: &[&str]) -> Vec<Body> {
        let began = FilesRestoreBegan {
            op,
            undo_of,
            to: None,
            to_in: None,
            files: paths.len() as u64,
            kept_bytes: 0,
        };
        let planned = paths.iter().map(|path| PlannedFile {
            path: (*path).to_owned(),
            target: RestoreTarget::Mode {
                mode: 0o644,
                hash: String::new(),
            },
            expected: FileState::Absent,
        });
        let plan = FilesPlan {
            op,
            files: planned.collect(),
            not_restored: None,
        };
        let files = paths.iter().map(|path| RestoredFile {
            path: (*path).to_owned(),
            outcome: RestoredOutcome::Restored,
        });
        let over = carry_out::over(op, RestoreOutcome::Done, files.collect());
        let begun: [Body; 2] = [began.into(), plan.into()];
        begun.into_iter().chain(over).collect()
    }

    /// Regression: it named nothing, and the command ended as if all files had been restored.
    #[tokio::test]
    async fn a_repeated_undo_without_a_recorded_list_names_what_the_journal_tells() {
        let bed = bed();
        let handle = bed.agent(None).await;
        let [restore, op] = [1, 2].map(|n| OpId::from_bytes([n; 16]));
        let ask = UndoFiles {
            op: Some(op),
            ..UndoFiles::default()
        };
        let asked = Asked::new(ask.op, OpVerb::UndoFiles, &ask.overwrite).unwrap();
        let mut guard = handle.lock().await;
        // Of this file nothing is kept, so the undo had nothing to write.
        let first = restored(restore, None, &["/a"]);
        guard.note(first).await.unwrap();
        let second = restored(op, Some(restore), &[]);
        guard
            .note(second.into_iter().chain(asked.line()))
            .await
            .unwrap();
        drop(guard);
        let answer = undo(&handle, ask).await.unwrap();
        let path = Some("/a".to_owned());
        let left = NotRestored::new(path, None, CannotRestore::NoLongerKept);
        assert_eq!(answer.not_restored, [left]);
        assert_eq!(answer.outcome, FilesOutcome::Failed);
    }
}
