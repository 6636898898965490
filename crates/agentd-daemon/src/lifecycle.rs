//! What can be done to an agent, one file per verb.

pub mod admission;
pub mod answer;
pub mod approval;
pub mod approve;
pub mod archive;
pub mod auto_reset;
pub mod bind;
pub mod branch_point;
pub mod checkpoint;
pub mod compact;
pub mod r#continue;
pub mod create;
pub mod deny;
mod due_times;
pub mod export;
pub mod files;
pub mod fork;
pub mod held;
pub mod import;
pub mod interrupt;
pub mod mcp;
pub mod merge_env;
pub mod ops;
pub mod process_log;
pub mod prune;
pub mod purge;
pub mod queue;
pub mod rename;
pub mod reset;
mod resolve_dirs;
pub mod restart;
pub mod restore;
pub mod revive;
pub mod rewind;
pub mod run_command;
pub mod schedule;
pub mod secrets;
pub mod send;
pub mod set_spec;
pub mod start;
pub mod stop;
pub mod subagents;
pub mod tasks;
pub mod tidy;
mod worker;

use crate::daemon::{AgentGuard, AgentHandle, Daemon};
use crate::error::{Error, Kind, Result};
use agentd_client::api::Ended;
use agentd_core::event::Event;
use agentd_core::id::{AgentId, Seq};
use agentd_process::kill_tree;
use agentd_store::ReadQuery;
use std::time::Duration;

/// Events that are read at once.
const PAGE: usize = 1000;
/// Default time limit for the foreground work of an agent to end.
pub const GRACE: Duration = Duration::from_secs(15);
/// Time between SIGTERM and SIGKILL for a process that is being killed.
const LAST_GRACE: Duration = Duration::from_secs(2);

/// Checks that the agent is still in the generation that the client has seen.
pub fn check_generation(guard: &AgentGuard<'_>, expected: Option<u64>) -> Result<()> {
    let now = guard.state.generation();
    match expected {
        Some(expected) if expected != now => {
            let what = format!("the agent has changed (generation {expected}, now {now})");
            Err(Error::new(Kind::Conflict, what).next("check its state and try again"))
        }
        _ => Ok(()),
    }
}

/// All events of an agent after one event and up to another.
pub async fn stretch(
    daemon: &Daemon,
    agent: AgentId,
    (mut after, through): (Seq, Seq),
) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    loop {
        let page = daemon
            .store
            .read(ReadQuery::all(agent, after, PAGE))
            .await?;
        let within = page.events.into_iter();
        events.extend(within.take_while(|event| event.seq <= through));
        match page.next {
            Some(next) if next < through => after = next,
            _ => return Ok(events),
        }
    }
}

/// The turn or the process did not end in time.
pub struct StillActive;

/// Waits until the turn and the process have ended. The caller has already recorded that the turn is to end.
pub async fn wait_idle(
    handle: &AgentHandle,
    at_most: Duration,
) -> std::result::Result<(), StillActive> {
    let done = handle.within(at_most, |guard| {
        if guard.state.turn.is_none() {
            if guard.process.is_none() {
                return Some(());
            }
            guard.end_process();
        }
        guard.reconcile();
        None
    });
    done.await.ok_or(StillActive)
}

/// Ends all subagents, background tasks and commands of the user. Called when no process runs the agent.
pub async fn end_background(handle: &AgentHandle) -> Result<Ended> {
    run_command::end_all(handle).await;
    Ok(Ended {
        subagents: subagents::end_all(handle).await?,
        tasks: tasks::kill_all(handle).await?,
    })
}

/// Kills the agent's process with all its descendants, after a short grace period. The next process recovers the turn.
pub async fn kill(handle: &AgentHandle) {
    let identity = {
        let guard = handle.lock().await;
        guard.process.as_ref().and_then(|process| process.identity)
    };
    let Some(identity) = identity else { return };
    let killed = tokio::task::spawn_blocking(move || kill_tree(identity, LAST_GRACE)).await;
    if let Ok(Err(error)) = killed {
        tracing::error!(agent = %handle.id, pid = identity.pid, %error, "runtime not killed");
        return;
    }
    handle
        .until(|guard| {
            let is_it = guard.process.as_ref().and_then(|it| it.identity) == Some(identity);
            (!is_it).then_some(())
        })
        .await;
}
