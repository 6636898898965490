//! What a restore that has ended did, from the journal.

use super::{named, nothing};
use crate::daemon::AgentHandle;
use crate::error::Result;
use agentd_client::api::{self, FileAction, FileOutcome, NotRestored, RestoredFiles};
use agentd_core::event::{
    Body, FileState, FilesPlan, FilesRestoreBegan, FilesRestoreEnded, Kind, RestoreTarget,
    RestoredFile, RestoredOutcome,
};
use agentd_core::id::{OpId, Seq};
use agentd_store::ReadQuery;
use std::collections::BTreeMap;

/// Events that are read at once.
const PAGE: usize = 100;

/// What the journal has of a restore that has begun, when it has ended.
pub async fn ended(handle: &AgentHandle, op: OpId) -> Result<Recorded> {
    let is_over = handle.until(|guard| {
        let now = guard.state.files.restoring;
        now.is_none_or(|now| now.op != op).then_some(())
    });
    is_over.await;
    recorded(handle, op).await
}

/// What the journal has of a restore. The lists of files are content and may be purged.
#[derive(Default)]
pub struct Recorded {
    plan: Option<FilesPlan>,
    ended: Option<FilesRestoreEnded>,
    files: Vec<RestoredFile>,
}

async fn recorded(handle: &AgentHandle, op: OpId) -> Result<Recorded> {
    let mut recorded = Recorded::default();
    let mut after = Seq::ZERO;
    loop {
        let query = ReadQuery {
            kinds: &[
                Kind::FilesPlan,
                Kind::FilesRestoreEnded,
                Kind::FilesRestored,
            ],
            ..ReadQuery::all(handle.id, after, PAGE)
        };
        let page = handle.daemon.store.read(query).await?;
        for event in page.events {
            match event.body {
                Body::FilesPlan(body) if body.op == op => recorded.plan = Some(body),
                Body::FilesRestoreEnded(body) if body.op == op => recorded.ended = Some(body),
                Body::FilesRestored(body) if body.op == op => {
                    recorded.files = body.files;
                    return Ok(recorded);
                }
                _ => {}
            }
        }
        match page.next {
            Some(next) => after = next,
            None => return Ok(recorded),
        }
    }
}

/// How a restore began, and where. Its begin is in the commit of its op, before it (`recorded`).
pub async fn began(
    handle: &AgentHandle,
    op: OpId,
    recorded: Seq,
) -> Result<Option<(FilesRestoreBegan, Seq)>> {
    let mut after = Seq::ZERO;
    loop {
        let query = ReadQuery {
            kinds: &[Kind::FilesRestoreBegan],
            ..ReadQuery::all(handle.id, after, PAGE)
        };
        let page = handle.daemon.store.read(query).await?;
        for event in page.events {
            match event.body {
                Body::FilesRestoreBegan(began) if began.op == op => {
                    return Ok(Some((began, event.seq)));
                }
                _ => {}
            }
        }
        match page.next {
            Some(next) if next < recorded => after = next,
            _ => return Ok(None),
        }
    }
}

impl Recorded {
    /// What the restore left as it is. `None` if the journal does not have the list.
    pub fn left(&self) -> Option<Vec<NotRestored>> {
        self.plan.as_ref()?.not_restored.clone()
    }

    /// The answer to the request of the restore, which left this as it is.
    pub async fn answer(
        self,
        handle: &AgentHandle,
        op: OpId,
        not_restored: Vec<NotRestored>,
    ) -> RestoredFiles {
        let agent = named(handle).await;
        let name = agent.name.clone().unwrap_or_default();
        // An undo is not on the stack: the next undo takes an earlier restore back.
        let stack = handle.lock().await.state.files.undo_stack().next().copied();
        let is_last = stack.is_some_and(|last| last.op == op);
        RestoredFiles {
            agent,
            op,
            outcome: nothing::recorded(self.ended.as_ref(), &not_restored),
            files: self.shown(),
            not_restored,
            undo: is_last.then(|| format!("agentd files undo {name}")),
        }
    }

    fn shown(self) -> Vec<api::RestoredFile> {
        let planned = self.plan.into_iter().flat_map(|plan| plan.files);
        let planned = planned.filter_map(|file| Some((file.path, action(&file.target)?)));
        let actions: BTreeMap<String, FileAction> = planned.collect();
        let files = self.files.into_iter().map(|file| {
            let action = actions.get(&file.path).copied();
            shown(file, action)
        });
        files.collect()
    }
}

fn shown(file: RestoredFile, action: Option<FileAction>) -> api::RestoredFile {
    let (outcome, why) = match file.outcome {
        RestoredOutcome::Restored => (FileOutcome::Restored, None),
        RestoredOutcome::Conflict => {
            let why = "it was changed while files were restored";
            (FileOutcome::Conflict, Some(why.to_owned()))
        }
        RestoredOutcome::Failed { why } => (FileOutcome::Failed, Some(why)),
    };
    api::RestoredFile {
        path: file.path,
        outcome,
        action: action.filter(|_| outcome == FileOutcome::Restored),
        why,
    }
}

/// What is done to a path that gets this state. Older plans do not tell.
pub const fn action(target: &RestoreTarget) -> Option<FileAction> {
    match target {
        RestoreTarget::Kept { state: None, .. } => None,
        RestoreTarget::Kept {
            state: Some(FileState::Absent),
            ..
        } => Some(FileAction::Removed),
        RestoreTarget::Kept { .. } | RestoreTarget::Git { .. } => Some(FileAction::Written),
        RestoreTarget::Mode { .. } => Some(FileAction::Permissions),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::event::{PlannedFile, Position};
    use agentd_core::id::AgentId;

    #[test]
    fn what_was_done_to_a_file_is_what_was_planned() {
        let op = OpId::from_bytes([1; 16]);
        let kept = |state| RestoreTarget::Kept {
            at: Position {
                agent: AgentId::from_bytes([2; 16]),
                seq: Seq(1),
            },
            state,
        };
        let mode = RestoreTarget::Mode {
            mode: 0o644,
            hash: String::new(),
        };
        let link = FileState::Symlink {
            target: "a".to_owned(),
        };
        let targets = [
            ("/gone", kept(Some(FileState::Absent))),
            ("/link", kept(Some(link))),
            ("/mode", mode),
            ("/old", kept(None)),
        ];
        let files = targets.map(|(path, target)| PlannedFile {
            path: path.to_owned(),
            target,
            expected: FileState::Absent,
        });
        let restored = |path: &str, outcome| RestoredFile {
            path: path.to_owned(),
            outcome,
        };
        let failed = RestoredOutcome::Failed { why: String::new() };
        let recorded = Recorded {
            plan: Some(FilesPlan {
                op,
                files: files.into(),
                not_restored: None,
            }),
            ended: None,
            files: vec![
                restored("/gone", RestoredOutcome::Restored),
                restored("/link", RestoredOutcome::Restored),
                restored("/mode", RestoredOutcome::Restored),
                restored("/old", RestoredOutcome::Restored),
                restored("/gone", failed),
            ],
        };
        let actions = recorded.shown().into_iter().map(|file| file.action);
        let expected = [
            Some(FileAction::Removed),
            Some(FileAction::Written),
            Some(FileAction::Permissions),
            None,
            None,
        ];
        assert_eq!(actions.collect::<Vec<_>>(), expected);
    }
}
