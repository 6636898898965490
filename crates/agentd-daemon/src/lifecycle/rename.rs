//! Another name; the old one stays as an alias.

use super::create::checked_name;
use super::ops::Asked;
use crate::desk::Desk;
use crate::problem::Result;
use agentd_core::event::{AgentRenamed, Body};

pub async fn rename(desk: &Desk, to: &str, asked: &Asked) -> Result<()> {
    let to = checked_name(to)?;
    let mut guard = desk.lock().await;
    if !asked.is_made(&guard.state)? && guard.state.name != to {
        let bodies = [Body::from(AgentRenamed { name: to })].into_iter();
        guard.note(bodies.chain(asked.line())).await?;
    }
    Ok(())
}
