//! Puts an agent away. Nothing of it is lost.

use super::ops::Asked;
use super::{stop, stretch, subagents};
use crate::agent_handle::AgentHandle;
use crate::daemon::Daemon;
use crate::problem::Result;
use agentd_client::api::{Archive, Ended, Stop};
use agentd_core::event::{AgentArchived, Body, Note, OpVerb};
use agentd_core::id::Seq;
use agentd_core::reset::Killed;
use std::sync::Arc;

pub async fn archive(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    ask: Archive,
    asked: &Asked,
) -> Result<Ended> {
    if handle.lock().await.state.is_held() {
        return held(handle, ask, asked).await;
    }
    // It takes several steps: the op is on record before the first, and whoever asks again has the rest made.
    let began = {
        let mut guard = handle.lock().await;
        let made = asked.made(&guard.state)?.map(|made| made.seq);
        match made {
            Some(seq) if guard.state.archived => {
                drop(guard);
                return ended(daemon, handle, seq).await;
            }
            Some(seq) => Some(seq),
            None if guard.state.archived => return Ok(Ended::default()),
            None => {
                let events = guard.note(asked.line()).await?;
                events.first().map(|event| event.seq)
            }
        }
    };
    // Whoever waits for it is told that it is gone, and not how its turn ends for that.
    subagents::deleted(daemon, handle).await?;
    let everything = Stop {
        kill_background: true,
        grace_ms: None,
    };
    let by_daemon = Asked::by_daemon(OpVerb::Stop);
    let ended_now = stop::stop(daemon, handle, everything, &by_daemon).await?;
    subagents::archive_all(daemon, handle).await?;
    let mut bodies: Vec<Body> = vec![AgentArchived {}.into()];
    if let Some(text) = ask.reason {
        let about = None;
        bodies.push(Note { about, text }.into());
    }
    handle.lock().await.note(bodies).await?;
    match began {
        Some(began) => ended(daemon, handle, began).await,
        None => Ok(ended_now),
    }
}

/// Nothing of one that is held runs, and what its journal says of tasks and subagents is a stranger's word: one step.
async fn held(handle: &AgentHandle, ask: Archive, asked: &Asked) -> Result<Ended> {
    let mut guard = handle.lock().await;
    if !guard.state.archived {
        let about = None;
        let reason = ask.reason.map(|text| Note { about, text }.into());
        let archived = [Body::from(AgentArchived {})].into_iter();
        let bodies = archived.chain(reason).chain(asked.line());
        guard.note(bodies).await?;
    }
    Ok(Ended::default())
}

/// What was ended since then for the agent to be put away, as its journal has it.
async fn ended(daemon: &Daemon, handle: &AgentHandle, began: Seq) -> Result<Ended> {
    let head = handle.lock().await.state.head;
    let mut events = stretch(daemon, handle.id, (began, head)).await?;
    let archived = events
        .iter()
        .position(|event| matches!(event.body, Body::AgentArchived(_)));
    events.truncate(archived.unwrap_or(events.len()));
    let killed = Killed::of(&handle.lock().await.state, &events);
    Ok(Ended {
        subagents: killed.subagents,
        tasks: killed.tasks,
    })
}
