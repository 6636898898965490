//! Another name; the old one stays as an alias.

use super::create::check_name;
use crate::desk::Desk;
use crate::problem::Result;
use agentd_core::event::AgentRenamed;

pub async fn rename(desk: &Desk, to: String) -> Result<()> {
    check_name(&to)?;
    let mut guard = desk.lock().await;
    if guard.state.name != to {
        guard.note([AgentRenamed { name: to }.into()]).await?;
    }
    Ok(())
}
