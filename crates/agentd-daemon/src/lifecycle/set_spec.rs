//! Changes the settings. A new process is started, so they apply from the next request on.

use super::create::check_spec;
use super::ops::Asked;
use crate::agent_handle::AgentHandle;
use crate::daemon::Daemon;
use crate::problem::Result;
use crate::supervisor::end_process;
use agentd_core::event::{Body, SpecSet};
use agentd_core::spec::AgentSpec;
use std::sync::Arc;

pub async fn set_spec(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    spec: AgentSpec,
    asked: &Asked,
) -> Result<()> {
    check_spec(&spec)?;
    let mut guard = handle.lock().await;
    if asked.is_made(&guard.state)? || *guard.state.spec == spec {
        return Ok(());
    }
    let spec = Box::new(spec);
    let bodies = [Body::from(SpecSet { spec })].into_iter();
    guard.note(bodies.chain(asked.line())).await?;
    // A turn in progress continues in the new process.
    end_process(&mut guard);
    daemon.reconcile(handle, &mut guard);
    Ok(())
}
