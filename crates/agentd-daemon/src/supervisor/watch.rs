//! Starts the process of an agent, waits for its end, and decides whether it is started again.

use super::{Process, program};
use crate::agent_handle::{AgentGuard, AgentHandle};
use crate::daemon::Daemon;
use crate::hooks::observe;
use agentd_core::event::{AgentFailed, Body, FailCause, Note};
use agentd_core::spec::Restart;
use agentd_failpoint as failpoint;
use agentd_process::{Child, Exit, Identity};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Consecutive deaths, each soon after the start, after which the agent fails.
pub(super) const DEATHS: u32 = 6;
/// A process that lived this long did not die of its start.
const LONG_LIFE: Duration = Duration::from_secs(10);
/// Between two tries to watch a process.
const BREATH: Duration = Duration::from_millis(500);
/// Exit codes of a runtime that ends the same way each time it is started: usage (its spec, its
/// configuration or its directory is wrong; 64 is usage inside a hook), refused, not found.
const CANNOT: [i32; 4] = [2, 3, 7, 64];

pub(super) async fn start(daemon: Arc<Daemon>, handle: Arc<AgentHandle>) {
    let pause = handle.lock().await.starts.pause();
    // Back-off: a process that dies repeatedly is started less and less often.
    tokio::time::sleep(pause).await;
    let mut guard = handle.lock().await;
    if guard
        .process
        .as_ref()
        .is_some_and(|it| it.identity.is_some())
    {
        // A runtime of an earlier daemon has connected meanwhile.
        return;
    }
    let is_still_needed = guard.state.needs_process() || !guard.state.stopped;
    if !is_still_needed || guard.state.is_held() || daemon.is_ending() {
        guard.process = None;
        guard.changed();
        return;
    }
    if guard.starts.deaths > 0 {
        let deaths = guard.starts.deaths;
        observe::restarts(&daemon, &handle, "crash", deaths);
    }
    failpoint::hit("before", "spawn");
    let mut proof = None;
    let spawned = program::spawn(&daemon, &handle, &guard.state.name, &mut proof);
    if proof.is_some() {
        guard.proof = proof;
    }
    failpoint::hit("after", "spawn");
    match spawned {
        Ok((identity, child)) => {
            let is_adopted = child.is_none();
            guard.process = Some(Process {
                identity: Some(identity),
                is_adopted,
                is_stopping: false,
            });
            guard.starts.at = Some(Instant::now());
            guard.changed();
            drop(guard);
            watch_on(&daemon, &handle, identity, child);
        }
        Err(error) => {
            tracing::error!(agent = %handle.id, %error, "runtime cannot be started");
            guard.process = None;
            guard.starts.deaths += 1;
            guard.changed();
            on_exit(&daemon, &handle, &mut guard, &error.to_string()).await;
        }
    }
}

/// Watches a process for as long as it lives. If the watch dies, another one takes its place.
pub(super) fn watch_on(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    identity: Identity,
    child: Option<Child>,
) {
    let watched = watch(Arc::clone(daemon), Arc::clone(handle), identity, child);
    let (again, agent) = (Arc::clone(daemon), Arc::clone(handle));
    daemon.work_on(handle, "runtime watch", watched, move |guard| {
        let process = guard.process.as_ref();
        if process.is_some_and(|it| it.identity == Some(identity)) {
            watch_on(&again, &agent, identity, None);
        }
    });
}

/// Waits for the end of a process that this or an earlier daemon started, and handles it.
async fn watch(
    daemon: Arc<Daemon>,
    handle: Arc<AgentHandle>,
    identity: Identity,
    child: Option<Child>,
) {
    while let Err(error) = agentd_process::ended(identity).await {
        tracing::error!(agent = %handle.id, pid = identity.pid, %error, "runtime is not watched");
        // tidy: polls until there are descriptors again
        tokio::time::sleep(BREATH).await;
    }
    let exit = child.and_then(|mut child| child.wait().ok());
    let mark = handle.id.to_string();
    let killed =
        tokio::task::spawn_blocking(move || agentd_process::kill_orphans(program::MARK, &mark));
    if let Ok(Err(error)) = killed.await {
        tracing::error!(agent = %handle.id, %error, "leftover processes of the runtime not killed");
    }
    let mut guard = handle.lock().await;
    let process = guard
        .process
        .take_if(|process| process.identity == Some(identity));
    let Some(process) = process else { return };
    guard.down = None;
    guard.link.gone();
    let ended_well = match exit {
        Some(exit) => exit == Exit::Code(0),
        None => guard.state.at_rest,
    };
    let reason = match (process.is_stopping, ended_well) {
        (true, _) => "stopped",
        (_, true) => "ended",
        _ => "crashed",
    };
    observe::exited(&daemon, &handle, reason, exit);
    let lived = guard.starts.at.is_none_or(|at| at.elapsed() > LONG_LIFE);
    if ended_well || lived {
        guard.starts.deaths = 0;
    }
    if !ended_well {
        guard.starts.deaths += 1;
        tracing::warn!(agent = %handle.id, pid = identity.pid, ?exit, "runtime process died");
        let words = program::last_words(&daemon, &handle);
        let words = daemon.secrets_of(&guard).redact(&words);
        if matches!(exit, Some(Exit::Code(code)) if CANNOT.contains(&code)) {
            give_up(&daemon, &handle, &mut guard, FailCause::CannotRun, &words).await;
        } else {
            on_exit(&daemon, &handle, &mut guard, &words).await;
        }
    }
    guard.changed();
    daemon.reconcile(&handle, &mut guard);
}

/// After a death: starts the process again, or marks the agent as failed.
async fn on_exit(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    guard: &mut AgentGuard<'_>,
    words: &str,
) {
    if !guard.state.needs_process() {
        return;
    }
    let cause = match guard.state.spec.restart {
        Restart::Never => Some(FailCause::NotRestarted),
        _ if guard.starts.deaths >= DEATHS => Some(FailCause::CrashLoop),
        _ => None,
    };
    match cause {
        Some(cause) => give_up(daemon, handle, guard, cause, words).await,
        None => daemon.reconcile(handle, guard),
    }
}

async fn give_up(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    guard: &mut AgentGuard<'_>,
    cause: FailCause,
    words: &str,
) {
    let text = match words.trim() {
        "" => "its process ended repeatedly without an error message".to_owned(),
        words => words.to_owned(),
    };
    let about = None;
    let bodies: [Body; 2] = [Note { about, text }.into(), AgentFailed { cause }.into()];
    if let Err(error) = guard.note(bodies).await {
        tracing::error!(agent = %handle.id, %error, "failure of the agent not recorded");
        // The journal does not say that it failed: reconcile tries again once the journal can be written.
        daemon.look_again(handle);
    }
}
