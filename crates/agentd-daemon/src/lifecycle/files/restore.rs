//! Restores files to what they were at a branch point.

use super::ask::Begin;
use super::sandbox::ToolSandbox;
use super::{answer, begin, history, lineage, names, of_background, order, position, reach};
use crate::clock;
use crate::daemon::AgentHandle;
use crate::error::{Error, Kind, Result};
use crate::lifecycle::ops::Asked;
use agentd_client::api::{NotRestored, RestoreFiles, RestoredFiles};
use agentd_core::event::{OpVerb, Position};
use agentd_core::files;
use agentd_core::id::{OpId, Seq};
use agentd_core::state::AgentState;

pub async fn restore(handle: &AgentHandle, ask: RestoreFiles) -> Result<RestoredFiles> {
    let op = ask.op.unwrap_or_else(|| OpId::new(clock::new_id()));
    let about = (&ask.to, ask.conversation, &ask.paths, ask.overwrite);
    let asked = Asked::new(Some(op), OpVerb::RestoreFiles, &about)?;
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
    let ancestors = lineage::ancestors(handle, &state).await?;
    let sandbox = ToolSandbox::of(handle, &ask.env).await;
    let selection = sandbox.selection(&ask.paths).await;
    begin::wait_scanned(handle).await;
    let state = handle.lock().await.state.clone();
    let place = (ask.conversation, ask.to.as_str());
    let to = position(handle, &state, &ancestors, place).await?;
    let history = history(handle, &state, &ancestors, state.head).await?;
    let mut plan = files::restore(&history, order(&history, to), &selection);
    plan.not_restored.extend(of_background(&state));
    names::number(handle, &state, &history, &mut plan.not_restored).await?;
    let changed = history.changes().iter().map(|change| change.path.as_str());
    let lost = history.lost().iter().flat_map(|lost| &lost.files);
    let lost = lost.filter_map(|file| file.path.as_deref());
    if let Some(unknown) = selection.without(changed.chain(lost)).first() {
        let what = format!("`{}` has not changed {unknown}", state.name);
        let next = format!("`agentd files list {}` lists what it changed", state.name);
        return Err(Error::new(Kind::NotFound, what).next(next));
    }
    let begin = Begin {
        op,
        undo_of: None,
        to: Some(to),
        plan,
        head: state.head,
        overwrite: ask.overwrite,
        dry_run: ask.dry_run,
        asked: &asked,
    };
    begin::begin(handle, &sandbox, begin).await
}

/// What a restore could not restore, as far as the journal before it tells: its plan has no list.
async fn planned_again(
    handle: &AgentHandle,
    state: &AgentState,
    ask: &RestoreFiles,
    (op, recorded): (OpId, Seq),
) -> Result<Vec<NotRestored>> {
    let ancestors = lineage::ancestors(handle, state).await?;
    let sandbox = ToolSandbox::of(handle, &ask.env).await;
    let selection = sandbox.selection(&ask.paths).await;
    let (to, began) = match answer::began(handle, op, recorded).await? {
        Some((began, at)) => {
            let to = Position {
                agent: began.to_in.unwrap_or(handle.id),
                seq: began.to.unwrap_or(at),
            };
            (to, at)
        }
        None => {
            let to = Position {
                agent: handle.id,
                seq: recorded,
            };
            (to, recorded)
        }
    };
    let history = history(handle, state, &ancestors, began).await?;
    let mut plan = files::restore(&history, order(&history, to), &selection);
    names::number(handle, state, &history, &mut plan.not_restored).await?;
    Ok(reach::plan(&sandbox, plan).await?.not_restored)
}
