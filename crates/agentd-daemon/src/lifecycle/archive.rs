//! Archives an agent: stops it and hides it, without deleting anything.

use super::ops::Asked;
use super::{stop, stretch, subagents};
use crate::daemon::AgentHandle;
use crate::error::Result;
use agentd_client::api::{Archive, Ended, Stop};
use agentd_core::event::{AgentArchived, Body, Note, OpVerb};
use agentd_core::id::{AgentId, Seq};
use agentd_core::reset::Killed;
use futures_util::future::BoxFuture;

pub async fn archive(handle: &AgentHandle, ask: Archive, asked: &Asked) -> Result<Ended> {
    if handle.lock().await.state.is_held() {
        return held(handle, ask, asked).await;
    }
    // It takes several steps: the op is recorded before the first, and a repeated request completes the rest.
    let began = {
        let mut guard = handle.lock().await;
        let made = asked.made(&guard.state)?.map(|made| made.seq);
        match made {
            Some(seq) if guard.state.archived => {
                drop(guard);
                return ended(handle, seq).await;
            }
            Some(seq) => Some(seq),
            None if guard.state.archived => return Ok(Ended::default()),
            None => {
                let events = guard.note(asked.line()).await?;
                events.first().map(|event| event.seq)
            }
        }
    };
    // Before the stop, so that the parent is told that the subagent was deleted, not that its turn was interrupted.
    subagents::deleted(handle).await?;
    let everything = Stop {
        kill_background: true,
        grace_ms: None,
    };
    let by_daemon = Asked::by_daemon(OpVerb::Stop);
    let ended_now = stop::stop(handle, everything, &by_daemon).await?;
    archive_all(handle).await?;
    let mut bodies: Vec<Body> = vec![AgentArchived {}.into()];
    if let Some(text) = ask.reason {
        let about = None;
        bodies.push(Note { about, text }.into());
    }
    handle.lock().await.note(bodies).await?;
    match began {
        Some(began) => ended(handle, began).await,
        None => Ok(ended_now),
    }
}

/// Archives an agent's subagents, and their subagents.
fn archive_all<'a>(handle: &'a AgentHandle) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        let children: Vec<AgentId> = {
            let guard = handle.lock().await;
            let children = guard.state.children.iter();
            children.map(|(agent, _)| *agent).collect()
        };
        for child in children {
            if let Some(child) = handle.daemon.existing(child).await? {
                let asked = Asked::by_daemon(OpVerb::Archive);
                archive(&child, Archive::default(), &asked).await?;
            }
        }
        Ok(())
    })
}

/// A held agent is archived in one step: nothing of it runs, and the tasks and subagents that its journal names belong
/// to the installation that it was exported from.
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

/// The tasks and subagents that were ended by the archiving that began at this event, from the journal.
async fn ended(handle: &AgentHandle, began: Seq) -> Result<Ended> {
    let head = handle.lock().await.state.head;
    let mut events = stretch(&handle.daemon, handle.id, (began, head)).await?;
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
