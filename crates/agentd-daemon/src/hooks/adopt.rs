//! Adopts hooks that an earlier daemon started. Their results are read from disk; a result that is not there is
//! recorded as unknown.

use super::{Done, record, run, session};
use crate::daemon::{AgentHandle, Daemon};
use crate::spawn::{blocking, spawn};
use agentd_core::event::HookWay;
use agentd_core::hook::{HookEvent, HookInput, HookInvocation};
use agentd_core::id::{HookId, InvocationId};
use agentd_core::state;
use agentd_process::task::{self, Found};
use serde_json::json;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// Adopts all hooks of one invocation that have no recorded end.
pub async fn adopt(handle: &AgentHandle, invocation: InvocationId, hook_input: &HookInput) {
    let invoked = handle.lock().await.state.hooks.get(invocation).cloned();
    let runs = invoked.map(|invoked| invoked.runs).unwrap_or_default();
    let mut waited = Vec::new();
    for run in runs.into_iter().filter(|run| run.ended.is_none()) {
        let is_async = run.started.is_async;
        let handle = handle.clone();
        let hook_input = hook_input.clone();
        let running = spawn("adopted hook", async move {
            find_out(&handle, &run, &hook_input).await;
        });
        if !is_async {
            waited.push(running);
        }
    }
    for running in waited {
        if let Err(error) = running.await {
            tracing::error!(agent = %handle.id, %error, "hook not adopted: task aborted");
        }
    }
}

async fn find_out(handle: &AgentHandle, run: &state::Run, hook_input: &HookInput) {
    let started = &run.started;
    let dir = handle.daemon.layout.hook_dir(started.hook);
    let done = match started.way {
        // The daemon that sent the request has died, so the response is lost.
        HookWay::Http => Done::unknown(),
        HookWay::Command => {
            let is_of_now = started.boot.is_none_or(|boot| boot == handle.daemon.boot);
            let place = dir.clone();
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
            run::of_found(hook_input, started.fails_closed, &dir, found).await
        }
    };
    record::end(handle, started.hook, done).await;
    blocking(move || run::remove(&dir)).await;
}

/// Adopts an earlier daemon's hooks by their directories. Agents whose SessionStart hooks were running get no process
/// before those have ended.
pub async fn adopt_all(daemon: &Arc<Daemon>) {
    let Ok(entries) = std::fs::read_dir(daemon.layout.hooks()) else {
        return;
    };
    let mut begun = HashSet::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let hook = name.to_str().and_then(|name| name.parse::<HookId>().ok());
        let Some(hook) = hook else { continue };
        let dir = entry.path();
        let handle = match daemon.layout.owner(&dir) {
            Some(agent) => daemon.existing(agent).await,
            None => Ok(None),
        };
        let handle = match handle {
            Ok(Some(handle)) => handle,
            Ok(None) => {
                leave_if_running(&dir);
                continue;
            }
            Err(error) => {
                // The result stays on disk: the next daemon adopts it.
                tracing::error!(%hook, %error, "hook not adopted: its agent cannot be read");
                continue;
            }
        };
        let mut guard = handle.lock().await;
        let known = guard.state.hooks.running(hook);
        let Some((invoked, run)) = known.map(|(invoked, run)| (invoked.clone(), run.clone()))
        else {
            // The journal has no running hook with this id: it never started, or its end is recorded.
            leave_if_running(&dir);
            continue;
        };
        let is_of_reset = run.started.op.is_some();
        // The only field of the input that matters when the hook's output is parsed.
        let source = match (invoked.turn, is_of_reset) {
            (Some(_), _) => Some("compact"),
            (None, true) => Some("clear"),
            (None, false) => None,
        };
        let hook_input = HookInput::new(invoked.event, json!({"source": source}));
        if invoked.event == HookEvent::SessionStart && invoked.turn.is_none() && !is_of_reset {
            if begun.insert(invoked.id) {
                session::hold(&mut guard, HookInvocation::new(invoked.id, hook_input));
            }
            continue;
        }
        drop(guard);
        spawn("adopted hook", async move {
            find_out(&handle, &run, &hook_input).await;
        });
    }
}

fn leave_if_running(dir: &Path) {
    match task::find(dir, None) {
        Ok(Found::Running(_)) => {}
        _ => run::remove(dir),
    }
}
