//! Puts an agent away. Nothing of it is lost.

use super::stop;
use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::problem::Result;
use agentd_client::api::{Archive, Stop};
use agentd_core::event::{AgentArchived, Body, Note};
use std::sync::Arc;

pub async fn archive(daemon: &Arc<Daemon>, desk: &Arc<Desk>, ask: Archive) -> Result<()> {
    if desk.lock().await.state.archived {
        return Ok(());
    }
    let everything = Stop {
        kill_background: true,
        grace_ms: None,
    };
    stop::stop(daemon, desk, everything).await?;
    let mut bodies: Vec<Body> = vec![AgentArchived {}.into()];
    if let Some(text) = ask.reason {
        let about = None;
        bodies.push(Note { about, text }.into());
    }
    desk.lock().await.note(bodies).await.map(drop)
}
