//! Takes the last restore of files back that was not taken back yet.

use super::ask::Begin;
use super::sandbox::ToolSandbox;
use super::{answer, begin, carry_out, history};
use crate::clock;
use crate::daemon::AgentHandle;
use crate::error::Result;
use crate::lifecycle::ops::Asked;
use agentd_client::api::{RestoredFiles, UndoFiles};
use agentd_core::event::OpVerb;
use agentd_core::files::{self, Selection};
use agentd_core::id::OpId;

pub async fn undo(handle: &AgentHandle, ask: UndoFiles) -> Result<RestoredFiles> {
    let op = ask.op.unwrap_or_else(|| OpId::new(clock::new_id()));
    let asked = Asked::new(Some(op), OpVerb::UndoFiles, &ask.overwrite)?;
    begin::wait_scanned(handle).await;
    let guard = handle.lock().await;
    let is_made = asked.is_made(&guard.state)?;
    if !is_made && !ask.dry_run {
        begin::check(&guard)?;
    }
    let state = guard.state.clone();
    drop(guard);
    if is_made {
        let ended = answer::ended(handle, op).await?;
        let left = ended.left().unwrap_or_default();
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
