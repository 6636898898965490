//! Hooks that an earlier daemon started: whatever became of them is found out, and never guessed.

use super::{Done, record, run, session};
use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::spawn::spawn;
use agentd_core::event::HookWay;
use agentd_core::hook::{Fire, HookEvent, Occasion};
use agentd_core::id::{FireId, HookId};
use agentd_core::state;
use agentd_process::task::{self, Found};
use serde_json::json;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// All that were told of one thing, and are not known to have ended.
pub async fn settle(daemon: &Arc<Daemon>, desk: &Arc<Desk>, fire: FireId, occasion: &Occasion) {
    let firing = desk.lock().await.state.hooks.get(fire).cloned();
    let runs = firing.map(|firing| firing.runs).unwrap_or_default();
    let mut waited = Vec::new();
    for run in runs.into_iter().filter(|run| run.ended.is_none()) {
        let is_async = run.started.is_async;
        let (daemon, desk) = (Arc::clone(daemon), Arc::clone(desk));
        let occasion = occasion.clone();
        let running = spawn("an earlier hook", async move {
            find_out(&daemon, &desk, &run, &occasion).await;
        });
        if !is_async {
            waited.push(running);
        }
    }
    for running in waited {
        if let Err(error) = running.await {
            tracing::error!(agent = %desk.id, %error, "a hook is not looked for");
        }
    }
}

async fn find_out(daemon: &Arc<Daemon>, desk: &Arc<Desk>, run: &state::Run, occasion: &Occasion) {
    let started = &run.started;
    let folder = daemon.layout.hook_folder(started.hook);
    let done = match started.way {
        // The one who called is gone, and so is the answer.
        HookWay::Http => Done::unknown(),
        HookWay::Command => {
            let is_of_now = started.boot.is_none_or(|boot| boot == daemon.boot);
            let place = folder.clone();
            let find = move || match is_of_now {
                true => task::find(&place, None),
                false => task::find_ended(&place),
            };
            let found = match tokio::task::spawn_blocking(find).await {
                Ok(Ok(Found::Running(running))) => running.ended().await,
                Ok(found) => found,
                Err(_) => Ok(Found::Unknown),
            };
            let found = found.unwrap_or(Found::Unknown);
            run::of_found(occasion, started.fails_closed, &folder, found)
        }
    };
    record::end(daemon, desk, started.hook, done).await;
    run::remove(&folder);
}

/// What is left of an earlier daemon's hooks, by what is left on disk. Agents that were about to begin do not
/// before their hooks have spoken.
pub async fn settle_all(daemon: &Arc<Daemon>) {
    let Ok(entries) = std::fs::read_dir(daemon.layout.hooks()) else {
        return;
    };
    let mut begun = HashSet::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let hook = name.to_str().and_then(|name| name.parse::<HookId>().ok());
        let Some(hook) = hook else { continue };
        let folder = entry.path();
        let desk = match run::owner(&folder) {
            Some(agent) => daemon.desk(agent).await.ok(),
            None => None,
        };
        let Some(desk) = desk else {
            leave_if_running(&folder);
            continue;
        };
        let mut guard = desk.lock().await;
        let known = guard.state.hooks.running(hook);
        let Some((firing, run)) = known.map(|(firing, run)| (firing.clone(), run.clone())) else {
            // Nothing of it is on record: it never began, or is over.
            leave_if_running(&folder);
            continue;
        };
        let is_of_reset = run.started.op.is_some();
        // As far as what it said depends on it.
        let source = match (firing.turn, is_of_reset) {
            (Some(_), _) => Some("compact"),
            (None, true) => Some("clear"),
            (None, false) => None,
        };
        let occasion = Occasion::new(firing.event, json!({"source": source}));
        if firing.event == HookEvent::SessionStart && firing.turn.is_none() && !is_of_reset {
            if begun.insert(firing.id) {
                session::hold(daemon, &desk, &mut guard, Fire::new(firing.id, occasion));
            }
            continue;
        }
        drop(guard);
        let daemon = Arc::clone(daemon);
        spawn("an earlier hook", async move {
            find_out(&daemon, &desk, &run, &occasion).await;
        });
    }
}

fn leave_if_running(folder: &Path) {
    match task::find(folder, None) {
        Ok(Found::Running(_)) => {}
        _ => run::remove(folder),
    }
}
