//! Puts an agent away. Nothing of it is lost.

use super::{stop, subagents};
use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::problem::Result;
use agentd_client::api::{Archive, Ended, Stop};
use agentd_core::event::{AgentArchived, Body, Note};
use std::sync::Arc;

pub async fn archive(daemon: &Arc<Daemon>, desk: &Arc<Desk>, ask: Archive) -> Result<Ended> {
    if desk.lock().await.state.archived {
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
