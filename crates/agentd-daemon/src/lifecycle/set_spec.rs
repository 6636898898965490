//! Other settings; they hold from the next request on, which is a new process's.

use super::create::check_spec;
use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::problem::Result;
use crate::supervisor::end_process;
use agentd_core::event::SpecSet;
use agentd_core::spec::AgentSpec;
use std::sync::Arc;

pub async fn set_spec(daemon: &Arc<Daemon>, desk: &Arc<Desk>, spec: AgentSpec) -> Result<()> {
    check_spec(&spec)?;
    let mut guard = desk.lock().await;
    if *guard.state.spec == spec {
        return Ok(());
    }
    let spec = Box::new(spec);
    guard.note([SpecSet { spec }.into()]).await?;
    // A turn that runs goes on in the new process.
    end_process(&mut guard);
    daemon.mind(desk, &mut guard);
    Ok(())
}
