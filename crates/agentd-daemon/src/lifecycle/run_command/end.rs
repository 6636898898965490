//! Ends commands of the user, and adopts those that an earlier daemon started.

use super::record::{record, remove};
use crate::daemon::{AgentGuard, AgentHandle, Daemon};
use crate::spawn::{blocking, spawn};
use agentd_core::id::CommandId;
use agentd_process::task::{self, Found};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long a command may take to end after an interrupt, before it is killed.
const GRACE: Duration = Duration::from_millis(500);
/// How long its end may take to be recorded.
const RECORDED: Duration = Duration::from_secs(5);

/// Ends these commands of an agent, and waits until that is recorded.
pub async fn end(handle: &AgentHandle, commands: &[CommandId]) {
    for command in commands {
        watch(handle, *command).await;
        let dir = handle.daemon.layout.command_dir(*command);
        let found = tokio::task::spawn_blocking(move || task::withdraw(&dir)).await;
        if let Ok(Ok(Found::Running(running))) = found {
            drop(running.stop());
            if tokio::time::timeout(GRACE, running.ended()).await.is_err() {
                drop(running.kill());
            }
        }
    }
    let recorded = handle.within(RECORDED, |guard| {
        let mut left = commands.iter();
        let is_left = left.any(|command| guard.state.commands.get(*command).is_some());
        (!is_left).then_some(())
    });
    if recorded.await.is_none() {
        tracing::warn!(agent = %handle.id, "ends of commands not recorded in time");
    }
}

pub async fn end_all(handle: &AgentHandle) {
    let running: Vec<CommandId> = {
        let guard = handle.lock().await;
        guard.state.commands.running().map(|(id, _)| *id).collect()
    };
    end(handle, &running).await;
}

/// Waits for a command of an earlier daemon and records its end, unless a task of this daemon does that already.
pub async fn watch(handle: &AgentHandle, command: CommandId) {
    if handle.lock().await.state.commands.get(command).is_none() {
        return;
    }
    watch_known(handle, command);
}

/// Watches all commands of an agent whose end is not recorded. They are those of an earlier daemon that could not adopt
/// them by their directories.
pub fn watch_all(guard: &AgentGuard<'_>) {
    for (command, _) in guard.state.commands.running() {
        watch_known(guard.handle, *command);
    }
}

fn watch_known(handle: &AgentHandle, command: CommandId) {
    if !handle.daemon.commands.watch(command) {
        return;
    }
    let handle = handle.clone();
    spawn("adopted command", async move {
        let found = find(&handle, command).await;
        record(&handle, command, found).await;
    });
}

/// A command that this daemon did not start. If its start is on disk nevertheless, its end is recorded.
pub async fn not_started(handle: &AgentHandle, command: CommandId) {
    handle.daemon.commands.forget(command);
    if handle.lock().await.state.commands.get(command).is_some() {
        return watch(handle, command).await;
    }
    let dir = handle.daemon.layout.command_dir(command);
    blocking(move || remove(&dir)).await;
}

/// How a command ended. Waits for it, if it is running. One that has not started is prevented from starting.
pub async fn find(handle: &AgentHandle, command: CommandId) -> agentd_process::Result<Found> {
    let boot = {
        let guard = handle.lock().await;
        guard.state.commands.get(command).map(|it| it.boot)
    };
    let dir = handle.daemon.layout.command_dir(command);
    // A command of an earlier boot, or of a home that this one is a copy of, cannot be running.
    let is_of_now = boot.is_none_or(|boot| boot == handle.daemon.boot);
    let found = tokio::task::spawn_blocking(move || match is_of_now {
        true => task::find(&dir, None),
        false => task::find_ended(&dir),
    });
    match found.await {
        Ok(Ok(Found::Running(running))) => running.ended().await,
        Ok(found) => found,
        Err(_) => Ok(Found::Unknown),
    }
}

/// Adopts the commands of an earlier daemon, by their directories.
pub async fn adopt_all(daemon: &Arc<Daemon>) {
    let layout = daemon.layout.clone();
    let commands = blocking(move || layout.all_commands()).await;
    for command in commands {
        let dir = daemon.layout.command_dir(command);
        let handle = match daemon.layout.owner(&dir) {
            Some(agent) => daemon.existing(agent).await,
            None => Ok(None),
        };
        let handle = match handle {
            Ok(handle) => handle,
            Err(error) => {
                // The result stays on disk: the next daemon adopts it.
                tracing::error!(%command, %error, "command not adopted: its agent cannot be read");
                continue;
            }
        };
        match handle {
            Some(handle) if handle.lock().await.state.commands.get(command).is_some() => {
                watch(&handle, command).await;
            }
            // The journal has no running command with this id: it never started, or its end is recorded.
            _ => blocking(move || remove_unless_running(&dir)).await,
        }
    }
}

fn remove_unless_running(dir: &Path) {
    match task::find(dir, None) {
        Ok(Found::Running(_)) => {}
        _ => remove(dir),
    }
}
