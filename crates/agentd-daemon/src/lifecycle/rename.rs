//! Renames an agent; the old name stays as an alias.

use super::ops::Asked;
use crate::agent_name;
use crate::daemon::AgentHandle;
use crate::error::Result;
use agentd_core::event::{AgentRenamed, Body};

pub async fn rename(handle: &AgentHandle, to: &str, asked: &Asked) -> Result<()> {
    let to = agent_name::checked(to)?;
    let mut guard = handle.lock().await;
    if !asked.is_made(&guard.state)? && guard.state.name != to {
        let bodies = [Body::from(AgentRenamed { name: to })].into_iter();
        guard.note(bodies.chain(asked.line())).await?;
    }
    Ok(())
}
