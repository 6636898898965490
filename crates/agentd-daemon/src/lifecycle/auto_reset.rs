//! Automatic resets. Core decides from the journal when one is due. At that time, also after a restart of the daemon,
//! this module runs it like any other reset.

use super::due_times::{DueTimes, Waited};
use super::reset;
use crate::clock;
use crate::daemon::{AgentGuard, AgentHandle, Daemon};
use agentd_client::api::Reset;
use agentd_core::event::{Body, ResetSource, ResetTo};
use agentd_core::id::AgentId;
use agentd_core::schedule::{Attempt, Attempts, Due};
use agentd_store::ReadQuery;
use std::sync::Arc;
use std::time::Duration;

/// How many idle resets are read at a time.
const LOOK: usize = 64;
/// The longest wait between two checks.
const LONGEST: Duration = Duration::from_secs(60);

/// Runs the reset that the journal says is due, in a task of the supervisor.
pub async fn due(handle: AgentHandle) {
    let made = make(&handle).await;
    let mut guard = handle.lock().await;
    guard.resetting_automatically = false;
    match made {
        Ok(()) => guard.reconcile(),
        // Tried again after a delay: the disk may be full for a while.
        Err(Failed) => handle.look_again(),
    }
}

/// The reset failed; the log has the reason.
struct Failed;

/// Runs the reset that is due, if one still is.
async fn make(handle: &AgentHandle) -> Result<(), Failed> {
    let guard = handle.lock().await;
    let Some(source) = guard.state.auto_reset(clock::now()) else {
        return Ok(());
    };
    let ask = Reset {
        reason: Some(reason(&guard, source).await),
        // Prompts that were sent meanwhile are answered in the new conversation.
        keep_queue: true,
        ..Reset::default()
    };
    let made = reset::ordered(handle, guard, (ResetTo::Fresh, source), ask);
    made.await.map(drop).map_err(|error| {
        tracing::warn!(agent = %handle.id, %error, "automatic reset failed");
        Failed
    })
}

/// The reason that the journal records.
async fn reason(guard: &AgentGuard<'_>, source: ResetSource) -> String {
    let auto = &guard.state.spec.auto_reset;
    match source {
        ResetSource::Idle => {
            let idle = Duration::from_millis(auto.idle_ms.unwrap_or_default());
            format!("the conversation was idle for {idle:?} (auto_reset.idle_ms)")
        }
        ResetSource::ContextSize => {
            let over = auto.over_tokens.unwrap_or_default();
            format!("the conversation has {over} tokens or more (auto_reset.over_tokens)")
        }
        ResetSource::Tool | ResetSource::User | ResetSource::Schedule => {
            let said = own_words(guard).await;
            said.unwrap_or_else(|| "the agent requested it".to_owned())
        }
    }
}

/// The reason that the agent gave: the note right after its request for a reset.
async fn own_words(guard: &AgentGuard<'_>) -> Option<String> {
    let at = guard.state.resets.scheduled()?;
    let query = ReadQuery::all(guard.state.id, at, 1);
    let events = guard.handle.daemon.store.read(query).await.ok()?.events;
    match events.into_iter().next()?.body {
        Body::Note(note) => Some(format!("the agent requested it: {}", note.text)),
        _ => None,
    }
}

/// Waits for the time of each idle reset, for as long as the daemon runs.
pub async fn watch(daemon: Arc<Daemon>) {
    let mut times = DueTimes::new(&daemon);
    loop {
        let next = next(&daemon, times.attempts()).await;
        match times.wait(next, LONGEST, &daemon.silences).await {
            Waited::Due(due) => {
                fire(&daemon, due.0).await;
                // The reset runs in a task of its own. If it succeeds, its time is not listed any more.
                times.ended(due, Attempt::Failed);
            }
            Waited::Changed => {}
            Waited::DaemonEnds => return,
        }
    }
}

/// The agent whose idle reset is due next, and when.
async fn next(daemon: &Daemon, attempts: &Attempts) -> Option<Due> {
    // Those that failed a moment ago are the earliest ones: they must not hide the others.
    let silences = daemon.store.idle_resets(LOOK + attempts.delayed()).await;
    let silences = silences.unwrap_or_else(|error| {
        tracing::warn!(%error, "due resets cannot be listed");
        Vec::new()
    });
    attempts.first(silences)
}

async fn fire(daemon: &Arc<Daemon>, agent: AgentId) {
    match daemon.handle(agent).await {
        Ok(handle) => {
            let _logged = make(&handle).await;
        }
        Err(error) => tracing::warn!(%agent, %error, "automatic reset failed"),
    }
}
