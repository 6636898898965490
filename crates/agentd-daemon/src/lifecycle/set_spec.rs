//! Changes the settings. A new process is started, so they apply from the next request on.

use super::create::check_spec;
use super::ops::Asked;
use super::resolve_dirs::resolve_dirs;
use crate::daemon::AgentHandle;
use crate::error::Result;
use agentd_core::event::{Body, SpecSet};
use agentd_core::spec::AgentSpec;

pub async fn set_spec(handle: &AgentHandle, spec: AgentSpec, asked: &Asked) -> Result<()> {
    check_spec(&spec)?;
    let mut guard = handle.lock().await;
    let home = guard.env.get("HOME").cloned();
    let spec = resolve_dirs(spec, Some(&guard.state.spec), home).await;
    if asked.is_made(&guard.state)? || *guard.state.spec == spec {
        return Ok(());
    }
    let spec = Box::new(spec);
    let bodies = [Body::from(SpecSet { spec })].into_iter();
    guard.note(bodies.chain(asked.line())).await?;
    // A turn in progress continues in the new process.
    guard.end_process();
    guard.reconcile();
    Ok(())
}
