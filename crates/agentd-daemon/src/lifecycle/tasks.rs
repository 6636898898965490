//! Background tasks: list them and stop them.

mod end;
pub mod output;

pub use end::{kill_all, stop};

use crate::daemon::{AgentHandle, Daemon};
use crate::error::Result;
use crate::spawn::blocking;
use agentd_client::api::{AgentRef, Task, TaskState, Tasks};
use agentd_core::event::{Body, TaskExit};
use agentd_core::id::{AgentId, CallId, Seq};
use agentd_core::message::Block;
use agentd_process::task::{self, Found};
use agentd_store::ReadQuery;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many events back the call that started a task is searched for.
const BACK: u64 = 500;

pub async fn list(handle: &AgentHandle) -> Tasks {
    let known: Vec<(Task, CallId, Seq)> = {
        let guard = handle.lock().await;
        let state = &guard.state;
        let tasks = state.tasks.running().map(|(id, known)| {
            let task = Task {
                id: *id,
                agent: AgentRef {
                    id: handle.id,
                    name: Some(state.name.clone()),
                },
                conversation: known.conversation,
                ordinal: state.tree.get(known.conversation).map(|it| it.ordinal),
                turn: known.turn,
                tool: known.tool.clone(),
                command: None,
                started_at: known.started_at,
                output_bytes: 0,
                state: TaskState::Unknown,
                running: false,
                exit: None,
            };
            (task, known.call.clone(), known.seq)
        });
        tasks.collect()
    };
    let mut tasks = Vec::new();
    for (mut task, call, seq) in known {
        let dir = handle.daemon.layout.task_dir(handle.id, task.id);
        task.command = command(&handle.daemon, handle.id, &call, seq).await;
        task.output_bytes = output_bytes(&dir).await;
        (task.state, task.exit) = state(&dir).await;
        task.running = matches!(task.state, TaskState::Starting | TaskState::Running);
        tasks.push(task);
    }
    Tasks { tasks }
}

pub async fn list_all(daemon: &Arc<Daemon>) -> Result<Tasks> {
    let agents = daemon.store.with_tasks().await?;
    let mut all = Tasks::default();
    for agent in agents {
        let handle = daemon.handle(agent).await?;
        all.tasks.extend(list(&handle).await.tasks);
    }
    all.tasks.sort_by_key(|task| task.started_at);
    Ok(all)
}

/// The state of a task. `find` is not called for a task that has not started: it would take the claim, and the task
/// could never start.
async fn state(dir: &Path) -> (TaskState, Option<TaskExit>) {
    let task = dir.to_owned();
    if blocking(move || !task.join("claim").exists() && !task.join("exit").exists()).await {
        return (TaskState::Starting, None);
    }
    match find(dir.to_owned()).await {
        Some(Found::Running(_)) => (TaskState::Running, None),
        Some(Found::Ended(exit)) => {
            let seen = TaskExit::seen(exit.code, exit.signal);
            (TaskState::Ended, Some(seen))
        }
        _ => (TaskState::Unknown, None),
    }
}

async fn find(dir: PathBuf) -> Option<Found> {
    blocking(move || task::find(&dir, None)).await.ok()
}

/// The size of a task's output so far.
async fn output_bytes(dir: &Path) -> u64 {
    let output = dir.join("output");
    blocking(move || fs::metadata(output).map_or(0, |it| it.len())).await
}

/// The command line, from the message with the call.
async fn command(daemon: &Daemon, agent: AgentId, call: &CallId, seq: Seq) -> Option<String> {
    let after = Seq(seq.0.saturating_sub(BACK));
    let query = ReadQuery::all(agent, after, BACK as usize);
    let events = daemon.store.read(query).await.ok()?.events;
    let mut messages = events.iter().rev().filter_map(|event| match &event.body {
        Body::MessageAdded(message) => Some(&message.blocks),
        _ => None,
    });
    messages.find_map(|blocks| {
        let mut calls = blocks.iter().filter_map(Block::as_call);
        let made = calls.find(|made| made.id == *call)?;
        let arguments = made.arguments.to_object();
        arguments.get("command")?.as_str().map(str::to_owned)
    })
}
