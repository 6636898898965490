//! A compaction on request. This module appends the request, the agent's process compacts between two turns, and this
//! module waits for the outcome.

use crate::clock;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::{Error, Kind, Result};
use crate::view;
use agentd_client::api::{Compact, Compacted};
use agentd_core::begin::Refused;
use agentd_core::compaction;
use agentd_core::event::{Body, CompactionAsked, Instruction, PauseReason};
use agentd_core::id::OpId;
use agentd_core::state::CompactionOutcome;

/// The longest instructions for the summary, in bytes.
const LONGEST: usize = 16 * 1024;

pub async fn compact(handle: &AgentHandle, ask: Compact) -> Result<Compacted> {
    let op = ask.op.unwrap_or_else(|| OpId::new(clock::new_id()));
    {
        let mut guard = handle.lock().await;
        let known = guard.state.compactions.outcome(op);
        if known.is_none() && guard.state.compactions.asked() != Some(op) {
            if guard.state.ops.get(op).is_some() || guard.state.resets.asked_for(op).is_some() {
                return Err(Error::from(Refused::OtherOp(Box::new(op))));
            }
            guard.check_released()?;
            check(&guard)?;
            let bodies = bodies(op, ask.instructions)?;
            guard.merge_env(&ask.env);
            guard.note(bodies).await?;
        }
        guard.reconcile();
    }
    let outcome = handle.until(|guard| {
        let turn = guard.state.turn.as_ref();
        let paused = turn.filter(|turn| turn.compacts == Some(op));
        let paused = paused.and_then(|turn| turn.paused);
        match (guard.state.compactions.outcome(op), paused) {
            (Some(outcome), _) => Some(Ok(outcome)),
            (None, Some(PauseReason::MissingKey)) => Some(Err(())),
            _ => None,
        }
    });
    let outcome = outcome.await.map_err(|()| {
        let what = "the compaction is waiting: the provider's key is missing";
        Error::new(Kind::Unavailable, what).next("`agentd continue` from a shell with the key")
    })?;
    let loaded = handle.daemon.store.load(handle.id).await?;
    let current = loaded.state.tree.current();
    let error = match outcome {
        CompactionOutcome::Failed => {
            view::last_note(&handle.daemon, handle.id, loaded.state.head).await
        }
        _ => None,
    };
    Ok(Compacted {
        op,
        conversation: current
            .ok_or_else(|| Error::new(Kind::Conflict, "the agent no longer has a conversation"))?,
        outcome,
        tokens: compaction::size(&loaded.window),
        error,
    })
}

/// Checks that the agent can compact now.
fn check(guard: &AgentGuard<'_>) -> Result<()> {
    let (state, name) = (&guard.state, &guard.state.name);
    let conflict = |what: String| Error::new(Kind::Conflict, what);
    if state.stopped || state.failed.is_some() {
        let error = conflict(format!("`{name}` is stopped or has failed"));
        return Err(error.next(format!("agentd start {name}")));
    }
    if state.resets.under_way().is_some() {
        return Err(conflict(format!("`{name}` is being reset")));
    }
    if let Some(other) = state.compactions.asked() {
        return Err(conflict(format!(
            "another compaction is in progress: {other}"
        )));
    }
    Ok(())
}

fn bodies(op: OpId, instructions: Option<String>) -> Result<Vec<Body>> {
    let mut bodies: Vec<Body> = vec![CompactionAsked { op }.into()];
    if let Some(text) = instructions.filter(|text| !text.trim().is_empty()) {
        if text.len() > LONGEST {
            let what = format!("instructions may have at most {LONGEST} bytes");
            return Err(Error::new(Kind::TooLarge, what));
        }
        bodies.push(Instruction { text }.into());
    }
    Ok(bodies)
}
