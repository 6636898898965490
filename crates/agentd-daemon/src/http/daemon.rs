//! The daemon itself.

use super::respond::{Answer, Body, JsonBody};
use crate::daemon::{Daemon, Stopped};
use crate::ending::Ending;
use crate::error::{Error, Kind};
use crate::outbox::NOTIFICATIONS;
use crate::spawn::blocking;
use agentd_client::api;
use agentd_files::own;
use agentd_store::AgentQuery;
use axum::extract::State;
use std::sync::Arc;
use std::time::Duration;

pub async fn show(State(daemon): State<Arc<Daemon>>) -> Answer<api::Daemon> {
    Ok(JsonBody(view(&daemon).await?))
}

/// How long a stop waits for the number of agents.
const COUNTED_WITHIN: Duration = Duration::from_secs(2);

/// Ends the agents' processes, then the daemon. It does not need the journal, which may be damaged: `verify --repair` needs a
/// stopped daemon.
pub async fn stop(State(daemon): State<Arc<Daemon>>) -> Answer<api::Daemon> {
    let counted = tokio::time::timeout(COUNTED_WITHIN, count(&daemon)).await;
    let agents = match counted {
        Ok(Ok(agents)) => agents,
        Ok(Err(error)) => {
            tracing::warn!(%error, "daemon stops without a count of its agents");
            0
        }
        Err(_) => 0,
    };
    let view = view_with(&daemon, agents).await;
    if daemon.choose_end(Ending::Stops) != Ending::Stops {
        let what = "the daemon is already ending and leaves the agents' processes running";
        let error = Error::new(Kind::Unavailable, what);
        return Err(error
            .next("stop it again: that starts a new daemon, which ends the processes")
            .into());
    }
    daemon.mark_stopped(Stopped::Accepted);
    Ok(JsonBody(view))
}

/// Lets no new turn begin, or lets turns begin again.
pub async fn drain(
    State(daemon): State<Arc<Daemon>>,
    Body(ask): Body<api::Drain>,
) -> Answer<api::Daemon> {
    match ask.off {
        true => daemon.admission.end_drain(),
        false => daemon.admission.drain(),
    }
    tracing::info!(draining = !ask.off, "admission of turns changed");
    Ok(JsonBody(view(&daemon).await?))
}

/// Reads the user's settings again.
pub async fn reload(State(daemon): State<Arc<Daemon>>) -> Answer<api::Daemon> {
    let reloaded = Arc::clone(&daemon);
    let reloaded = blocking(move || reloaded.reload_settings()).await;
    reloaded.map_err(|why| {
        Error::new(
            Kind::Invalid,
            "the settings cannot be used: the daemon keeps those in effect",
        )
        .because(why)
        .next("correct config.toml, then run `agentd daemon reload` again")
    })?;
    tracing::info!("settings reloaded");
    Ok(JsonBody(view(&daemon).await?))
}

async fn view(daemon: &Arc<Daemon>) -> crate::error::Result<api::Daemon> {
    let agents = count(daemon).await?;
    Ok(view_with(daemon, agents).await)
}

async fn count(daemon: &Daemon) -> agentd_store::Result<u64> {
    let query = AgentQuery {
        limit: 1,
        ..AgentQuery::default()
    };
    Ok(daemon.store.agents(query).await?.total)
}

async fn view_with(daemon: &Arc<Daemon>, agents: u64) -> api::Daemon {
    let (mut awake, mut outdated) = (0, 0);
    for handle in daemon.handles() {
        let guard = handle.lock().await;
        let process = guard.process.as_ref();
        awake += u64::from(process.is_some());
        outdated += u64::from(process.is_some_and(|it| it.is_outdated));
    }
    let (turns, waiting) = daemon.admission.counts();
    let needs_restart = daemon.needs_restart();
    api::Daemon {
        turns,
        waiting,
        draining: daemon.admission.is_draining(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        home: daemon.layout.home().display().to_string(),
        started_at: daemon.started_at,
        agents,
        awake,
        outdated,
        build: agentd_process::own_build(),
        memory: memory().unwrap_or_default(),
        home_id: daemon.home.identity.id.to_string(),
        read_only: daemon.home.suspicion.as_ref().map(ToString::to_string),
        sandbox: daemon
            .default_level()
            .and_then(|level| serde_json::from_value(level.into()).ok()),
        without_scopes: daemon.without_scopes.why(),
        failing_webhooks: failing_webhooks(daemon),
        failing_backup: daemon.failing_backup.get(),
        needs_restart: needs_restart.into_iter().map(str::to_owned).collect(),
    }
}

fn failing_webhooks(daemon: &Daemon) -> Vec<api::FailingWebhook> {
    let failing = daemon.deliveries.failing_with(NOTIFICATIONS).into_iter();
    let failing = failing.map(|(name, failing)| api::FailingWebhook {
        name,
        attempts: failing.attempts,
        error: failing.why,
    });
    failing.collect()
}

/// Bytes that this process has in memory.
fn memory() -> Option<u64> {
    let text = own::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}
