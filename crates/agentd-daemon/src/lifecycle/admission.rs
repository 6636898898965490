//! Holds turns back that may not begin now, and lets them begin later.

use crate::clock;
use crate::daemon::{AgentGuard, Daemon, KnownLimits, disk};
use crate::ending::left;
use crate::error::Result;
use agentd_core::admission::{Rules, Wait};
use agentd_core::time::Timestamp;
use agentd_core::usage::MicroUsd;
use agentd_store::SpendingQuery;
use std::sync::Arc;
use std::time::Duration;

/// How often turns that wait are looked at: disk space, and the next day, come without an event.
const LOOK: Duration = Duration::from_secs(2);
const DAY_MS: i64 = 86_400_000;

/// Admits the agent's next turn, or lets it wait.
pub async fn ask(guard: &AgentGuard<'_>) -> Option<Wait> {
    let daemon = &guard.handle.daemon;
    let (rules, known) = limits(daemon).await;
    let why = daemon.admission.ask(&rules, &guard.state, known);
    if let Some(why) = why {
        tracing::info!(agent = %guard.handle.id, %why, "turn waits");
    }
    why
}

/// Admits a turn that a verb begins now or not at all: if it may not begin, the verb is refused.
pub async fn ask_now(guard: &AgentGuard<'_>) -> Option<Wait> {
    let daemon = &guard.handle.daemon;
    let (rules, known) = limits(daemon).await;
    daemon.admission.ask_now(&rules, &guard.state, known)
}

/// The limits of the home, and how much of them is used.
async fn limits(daemon: &Daemon) -> (Rules, KnownLimits) {
    let rules = daemon.settings().rules;
    let spent_today = match rules.day_usd {
        // A sum that cannot be read holds no turn back.
        Some(_) => spent_today(daemon).await.ok(),
        None => None,
    };
    let disk = disk(daemon.layout.home());
    (rules, KnownLimits { spent_today, disk })
}

/// What all agents have spent on this day (UTC).
pub async fn spent_today(daemon: &Daemon) -> Result<MicroUsd> {
    let midnight = clock::now().day().saturating_mul(DAY_MS);
    let query = SpendingQuery {
        since: Some(Timestamp::from_millis(midnight)),
        ..SpendingQuery::default()
    };
    let rows = daemon.store.spending(query).await?;
    let add = |sum: MicroUsd, row: &agentd_store::SpendingRow| sum.saturating_add(row.spent.cost);
    Ok(rows.iter().fold(MicroUsd::default(), add))
}

/// Lets turns begin that waited, for as long as the daemon runs.
pub async fn watch(daemon: Arc<Daemon>) {
    let mut ending = daemon.ending();
    loop {
        let is_idle = daemon.admission.waiting().is_empty();
        let look = async {
            match is_idle {
                true => std::future::pending().await,
                // tidy: polls for disk space and for the next day
                false => tokio::time::sleep(LOOK).await,
            }
        };
        tokio::select! {
            () = left(&mut ending) => return,
            () = daemon.admission.opened.notified() => {}
            () = look => {}
        }
        ask_waiting(&daemon).await;
    }
}

/// Asks once for each turn that waits. The limits are read once for all: what has been spent is a query of the store.
async fn ask_waiting(daemon: &Arc<Daemon>) {
    let waiting = daemon.admission.waiting();
    if waiting.is_empty() {
        return;
    }
    let (rules, known) = limits(daemon).await;
    for agent in waiting {
        let Ok(handle) = daemon.handle(agent).await else {
            daemon.admission.forget(agent);
            continue;
        };
        let mut guard = handle.lock().await;
        // One that has nothing to begin any more must not keep the others waiting.
        daemon.admission.track(&guard.state);
        if daemon.admission.waits(agent).is_none() {
            continue;
        }
        match daemon.admission.ask(&rules, &guard.state, known) {
            None => guard.reconcile(),
            // All other turns wait for it too. The other reasons do not hold for turns of subagents.
            Some(Wait::Disk { .. }) => return,
            Some(Wait::Draining | Wait::Turns { .. } | Wait::DayCost { .. }) => {}
        }
    }
}
