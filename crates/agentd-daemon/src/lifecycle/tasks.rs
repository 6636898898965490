//! Background tasks: what runs, and its end.

use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::problem::Result;
use agentd_client::api::{Task, Tasks};
use agentd_core::event::{TaskEnded, TaskExit};
use agentd_core::id::TaskId;
use agentd_process::task::{self, Found};
use std::path::PathBuf;
use std::sync::Arc;

pub async fn list(daemon: &Daemon, desk: &Desk) -> Tasks {
    let guard = desk.lock().await;
    let tasks = guard.state.tasks.running().map(|(id, known)| Task {
        id: *id,
        tool: known.tool.clone(),
        conversation: known.conversation,
        started_at: known.started_at,
        running: true,
    });
    let mut tasks: Vec<Task> = tasks.collect();
    drop(guard);
    for task in &mut tasks {
        let folder = daemon.layout.task_folder(desk.id, task.id);
        // Looked at, and not asked for: that would keep one from beginning.
        task.running = !folder.join("exit").exists();
    }
    Tasks { tasks }
}

/// Kills all that go on in the background, and says so in the journal. No process runs the agent.
pub async fn kill_all(daemon: &Arc<Daemon>, desk: &Arc<Desk>) -> Result<()> {
    let running: Vec<TaskId> = {
        let guard = desk.lock().await;
        guard.state.tasks.running().map(|(id, _)| *id).collect()
    };
    for id in running {
        let folder = daemon.layout.task_folder(desk.id, id);
        let exit = end(folder).await;
        let mut guard = desk.lock().await;
        if guard.state.tasks.running().any(|(known, _)| *known == id) {
            guard.note([TaskEnded { task: id, exit }.into()]).await?;
        }
    }
    Ok(())
}

async fn end(folder: PathBuf) -> TaskExit {
    let find = move || task::find(&folder, None);
    let found = tokio::task::spawn_blocking(find).await;
    let found = match found {
        Ok(Ok(Found::Running(running))) => {
            // One that is gone by now has ended.
            drop(running.kill());
            running.ended().await
        }
        Ok(found) => found,
        Err(_) => return TaskExit::Unknown,
    };
    match found {
        Ok(Found::Ended(exit)) => match (exit.code, exit.signal) {
            (Some(code), _) => TaskExit::Code { code },
            (None, Some(signal)) => TaskExit::Signal { signal },
            (None, None) => TaskExit::Unknown,
        },
        _ => TaskExit::Unknown,
    }
}
