//! Resets that nobody asks for. Core says from the journal when one is due; here it is noticed, at its time and
//! after any restart, and goes the way of every reset.

use super::reset;
use crate::agent_handle::{AgentGuard, AgentHandle};
use crate::clock;
use crate::daemon::{Daemon, left};
use agentd_client::api::Reset;
use agentd_core::event::{Body, ResetSource, ResetTo};
use agentd_core::id::AgentId;
use agentd_core::time::Timestamp;
use agentd_store::ReadQuery;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Silences that are looked at together.
const LOOK: usize = 64;
/// A clock may be set, and a machine may sleep: it is looked at again at least so often.
const LONGEST: Duration = Duration::from_secs(60);
/// Before one that could not be made is tried again.
const TROUBLE: Duration = Duration::from_secs(30);

/// Makes the reset that is due, if one still is.
pub async fn make(daemon: &Arc<Daemon>, handle: &Arc<AgentHandle>) {
    let guard = handle.lock().await;
    let Some(source) = guard.state.auto_reset(clock::now()) else {
        return;
    };
    let ask = Reset {
        reason: Some(reason(daemon, &guard, source).await),
        // What somebody sent meanwhile is answered, in the new conversation.
        keep_queue: true,
        ..Reset::default()
    };
    let made = reset::ordered(daemon, handle, guard, (ResetTo::Fresh, source), ask);
    if let Err(problem) = made.await {
        tracing::warn!(agent = %handle.id, %problem, "a reset that was due is not made");
    }
}

/// Why, for whoever reads the log.
async fn reason(daemon: &Daemon, guard: &AgentGuard<'_>, source: ResetSource) -> String {
    let auto = &guard.state.spec.auto_reset;
    match source {
        ResetSource::Idle => {
            let idle = Duration::from_millis(auto.idle_ms.unwrap_or_default());
            format!("nothing was said for {idle:?} (auto_reset.idle_ms)")
        }
        ResetSource::ContextSize => {
            let over = auto.over_tokens.unwrap_or_default();
            format!("the conversation has {over} tokens or more (auto_reset.over_tokens)")
        }
        ResetSource::Tool | ResetSource::User => {
            let said = own_words(daemon, guard).await;
            said.unwrap_or_else(|| "the agent asked for it".to_owned())
        }
    }
}

/// What the agent gave as its reason: the note of the same append.
async fn own_words(daemon: &Daemon, guard: &AgentGuard<'_>) -> Option<String> {
    let at = guard.state.resets.scheduled()?;
    let query = ReadQuery::all(guard.state.id, at, 1);
    let events = daemon.store.read(query).await.ok()?.events;
    match events.into_iter().next()?.body {
        Body::Note(note) => Some(format!("the agent asked for it: {}", note.text)),
        _ => None,
    }
}

/// Waits for the end of each silence there is, for as long as the daemon runs.
pub async fn watch(daemon: Arc<Daemon>) {
    let mut ending = daemon.ending();
    // Each by its end: the next silence of the same agent is another one.
    let mut tried: HashMap<(AgentId, Timestamp), Instant> = HashMap::new();
    loop {
        tried.retain(|_, since| since.elapsed() < TROUBLE);
        let silences = daemon.store.idle_resets(LOOK).await;
        let silences = silences.unwrap_or_else(|error| {
            tracing::warn!(%error, "nobody can tell which resets are due");
            Vec::new()
        });
        let mut silences = silences.into_iter();
        let next = silences.find(|silence| !tried.contains_key(silence));
        let now = clock::now();
        let wait = match next {
            Some((agent, at)) if at <= now => {
                fire(&daemon, agent).await;
                // Where it was made, it is not among them any more.
                tried.insert((agent, at), Instant::now());
                continue;
            }
            Some((_, at)) => Duration::from_millis(at.since(now)).min(LONGEST),
            None => LONGEST,
        };
        tokio::select! {
            // tidy: polls nothing; this is the time that was asked for
            () = tokio::time::sleep(wait) => {}
            () = daemon.silences.notified() => {}
            () = left(&mut ending) => return,
        }
    }
}

async fn fire(daemon: &Arc<Daemon>, agent: AgentId) {
    match daemon.handle(agent).await {
        Ok(handle) => make(daemon, &handle).await,
        Err(problem) => tracing::warn!(%agent, %problem, "a reset that was due is not made"),
    }
}
