//! Changes the settings. A new process is started, so they apply from the next request on. An agent that failed because it
//! could not run with its settings starts again.

use super::create::check_runnable;
use super::ops::Asked;
use super::resolve_dirs::resolve_dirs;
use crate::daemon::AgentHandle;
use crate::error::Result;
use crate::hooks::session;
use agentd_core::event::{AgentStarted, Body, FailCause, SpecSet};
use agentd_core::spec::AgentSpec;

pub async fn set_spec(handle: &AgentHandle, spec: AgentSpec, asked: &Asked) -> Result<()> {
    check_runnable(&handle.daemon, &spec)?;
    let mut guard = handle.lock().await;
    let home = guard.env.get("HOME").cloned();
    let spec = resolve_dirs(spec, Some(&guard.state.spec), home).await;
    if asked.is_made(&guard.state)? || *guard.state.spec == spec {
        return Ok(());
    }
    let starts = guard.state.failed == Some(FailCause::CannotRun) && !guard.state.stopped;
    let spec = Box::new(spec);
    let bodies = [Body::from(SpecSet { spec })].into_iter();
    let bodies = bodies.chain(starts.then(|| AgentStarted {}.into()));
    let events = guard.note(bodies.chain(asked.line())).await?;
    if starts {
        guard.starts.forgive();
        let at = events.first().map(|event| event.seq);
        session::resumes(&mut guard, at).await;
    }
    // A turn in progress continues in the new process.
    guard.end_process();
    guard.reconcile();
    Ok(())
}
