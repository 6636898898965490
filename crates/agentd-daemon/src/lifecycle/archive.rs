//! Puts an agent away, or takes it out again. Nothing of it is lost.

use super::{stop, subagents};
use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::problem::Result;
use agentd_client::api::{Archive, Ended, Stop};
use agentd_client::{Kind, Problem};
use agentd_core::event::{AgentArchived, AgentRestored, AgentStarted, Body, Note};
use std::sync::Arc;

pub async fn archive(daemon: &Arc<Daemon>, desk: &Arc<Desk>, ask: Archive) -> Result<Ended> {
    let is_archived = desk.lock().await.state.archived;
    if is_archived != ask.restore {
        return Ok(Ended::default());
    }
    if ask.restore {
        let guard = desk.lock().await;
        let current = guard.state.tree.current_conversation();
        if current.is_some_and(|current| current.purged) {
            let what = format!("nothing is left of `{}` to go on with", guard.state.name);
            return Err(Problem::new(Kind::Conflict, what).because("its words were purged"));
        }
        drop(guard);
        let bodies: [Body; 2] = [AgentRestored {}.into(), AgentStarted {}.into()];
        desk.lock().await.note(bodies).await?;
        return Ok(Ended::default());
    }
    // Whoever waits for it is told that it is gone, and not how its turn ends for that.
    subagents::deleted(daemon, desk).await?;
    let everything = Stop {
        kill_background: true,
        grace_ms: None,
    };
    let ended = stop::stop(daemon, desk, everything).await?;
    subagents::archive_all(daemon, desk).await?;
    let mut bodies: Vec<Body> = vec![AgentArchived {}.into()];
    if let Some(text) = ask.reason {
        let about = None;
        bodies.push(Note { about, text }.into());
    }
    desk.lock().await.note(bodies).await?;
    Ok(ended)
}
