//! Starts the process of an agent, waits for its end, and does what core decides then.

use crate::daemon::{AgentGuard, AgentHandle, Process};
use crate::hooks::observe;
use crate::runtimes::Runtimes;
use crate::spawn::blocking;
use agentd_core::event::{AgentFailed, Body, FailCause, Note};
use agentd_core::supervise::{self, AfterExit};
use agentd_failpoint as failpoint;
use agentd_process::{Child, Exit, Identity};
use std::sync::Arc;
use std::time::Instant;

pub(super) async fn start(runtimes: Arc<dyn Runtimes>, handle: AgentHandle) {
    let pause = handle.lock().await.starts.pause();
    // Back-off: a process that dies repeatedly is started less and less often.
    tokio::time::sleep(pause).await;
    let mut guard = handle.lock().await;
    let process = guard.process.as_ref();
    if process.is_some_and(|it| it.identity.is_some()) {
        // A runtime of an earlier daemon has connected meanwhile.
        return;
    }
    if !supervise::is_still_needed(&guard.state, handle.daemon.is_ending()) {
        guard.process = None;
        guard.changed();
        return;
    }
    if guard.starts.has_died() {
        observe::restarts(&handle, "crash", guard.starts.deaths());
    }
    failpoint::hit("before", "spawn");
    // The lock is held: a process that connects waits until the daemon knows it.
    let (starter, name) = (Arc::clone(&runtimes), guard.state.name.clone());
    let limits = guard.state.spec.limits.clone();
    let id = handle.id;
    // Cleared for the start: if it fails after the process was created, only the digest on disk is valid.
    let known = guard.proof.take();
    let started = blocking(move || starter.start(id, &name, &limits)).await;
    if let Ok(started) = &started {
        guard.proof = started.proof.clone().or(known);
    }
    failpoint::hit("after", "spawn");
    match started {
        Ok(started) => {
            guard.process = Some(match started.is_new {
                true => Process {
                    identity: Some(started.identity),
                    started: Some(Instant::now()),
                    ..Process::starting()
                },
                false => Process::adopted(started.identity),
            });
            guard.changed();
            drop(guard);
            watch_on(&runtimes, &handle, started.identity, started.child);
        }
        Err(error) => {
            tracing::error!(agent = %handle.id, %error, "runtime cannot be started");
            guard.process = None;
            guard.changed();
            let exit = supervise::Exit::NotStarted;
            let after = guard.exited(exit, None);
            follow(&mut guard, after, &error.to_string()).await;
            guard.reconcile();
        }
    }
}

/// Watches a process for as long as it lives. If the watching task panics, another one replaces it.
pub(super) fn watch_on(
    runtimes: &Arc<dyn Runtimes>,
    handle: &AgentHandle,
    identity: Identity,
    child: Option<Child>,
) {
    let watched = watch(Arc::clone(runtimes), handle.clone(), identity, child);
    let (runtimes, agent) = (Arc::clone(runtimes), handle.clone());
    handle.work_on("runtime watch", watched, move |guard| {
        let process = guard.process.as_ref();
        if process.is_some_and(|it| it.identity == Some(identity)) {
            watch_on(&runtimes, &agent, identity, None);
        }
    });
}

/// Waits for the end of a process that this or an earlier daemon started, and handles it.
async fn watch(
    runtimes: Arc<dyn Runtimes>,
    handle: AgentHandle,
    identity: Identity,
    child: Option<Child>,
) {
    let exit = runtimes.ended(handle.id, identity, child).await;
    let mut guard = handle.lock().await;
    let process = guard
        .process
        .take_if(|process| process.identity == Some(identity));
    let Some(process) = process else { return };
    guard.down = None;
    guard.link.gone();
    let lived = process.started.map(|started| started.elapsed());
    let after = guard.exited(known(exit), lived);
    let reason = match (process.is_stopping, after) {
        (true, _) => "stopped",
        (_, AfterExit::Nothing) => "ended",
        _ => "crashed",
    };
    observe::exited(&handle, reason, exit);
    if after != AfterExit::Nothing {
        tracing::warn!(agent = %handle.id, pid = identity.pid, ?exit, "runtime process died");
        let id = handle.id;
        let words = blocking(move || runtimes.last_words(id)).await;
        let words = guard.secrets().redact(&words);
        follow(&mut guard, after, &words).await;
    }
    guard.changed();
    guard.reconcile();
}

const fn known(exit: Option<Exit>) -> supervise::Exit {
    match exit {
        Some(Exit::Code(code)) => supervise::Exit::Code(code),
        Some(Exit::Signal(_)) => supervise::Exit::Signal,
        None => supervise::Exit::Unknown,
    }
}

/// Records that the agent has failed, if core gives up on it. Otherwise reconcile starts another process.
async fn follow(guard: &mut AgentGuard<'_>, after: AfterExit, words: &str) {
    if let AfterExit::GiveUp(cause) = after {
        give_up(guard, cause, words).await;
    }
}

async fn give_up(guard: &mut AgentGuard<'_>, cause: FailCause, words: &str) {
    let text = match words.trim() {
        "" => "its process ended repeatedly without an error message".to_owned(),
        words => words.to_owned(),
    };
    let about = None;
    let bodies: [Body; 2] = [Note { about, text }.into(), AgentFailed { cause }.into()];
    if let Err(error) = guard.note(bodies).await {
        tracing::error!(agent = %guard.handle.id, %error, "failure of the agent not recorded");
        // Without the record the agent has not failed: reconcile starts another process, and its exit leads here again.
        guard.handle.look_again();
    }
}
