//! Background tasks: what runs, and its end.

pub mod output;

use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::problem::{Result, of_store};
use agentd_client::api::{Task, TaskState, Tasks};
use agentd_client::{Kind, Problem};
use agentd_core::event::{Body, Notice, NoticeCause, TaskEnded, TaskExit};
use agentd_core::id::{AgentId, CallId, Seq, TaskId};
use agentd_core::message::Block;
use agentd_process::task::{self, Found};
use agentd_store::ReadQuery;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How far back, event by event, the call is looked for that started a task.
const BACK: u64 = 500;
/// How long a task may take to end once it was asked to.
const GRACE: Duration = Duration::from_secs(3);
/// How long the agent's process may take to say so.
const SAID: Duration = Duration::from_secs(2);

pub async fn list(daemon: &Daemon, desk: &Desk) -> Tasks {
    let known: Vec<(Task, CallId, Seq)> = {
        let guard = desk.lock().await;
        let name = &guard.state.name;
        let tasks = guard.state.tasks.running().map(|(id, known)| {
            let task = Task {
                id: *id,
                agent: desk.id,
                name: name.clone(),
                conversation: known.conversation,
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
        let folder = daemon.layout.task_folder(desk.id, task.id);
        task.command = command(daemon, desk.id, &call, seq).await;
        task.output_bytes = fs::metadata(folder.join("output")).map_or(0, |it| it.len());
        (task.state, task.exit) = state(&folder).await;
        task.running = matches!(task.state, TaskState::Starting | TaskState::Running);
        tasks.push(task);
    }
    Tasks { tasks }
}

pub async fn list_all(daemon: &Daemon) -> Result<Tasks> {
    let agents = daemon.store.with_tasks().await;
    let agents = agents.map_err(|error| of_store(&error))?;
    let mut all = Tasks::default();
    for agent in agents {
        let desk = daemon.desk(agent).await?;
        all.tasks.extend(list(daemon, &desk).await.tasks);
    }
    all.tasks.sort_by_key(|task| task.started_at);
    Ok(all)
}

/// What is known of a task. Where it has not begun it is not looked for: that would keep it from it.
async fn state(folder: &Path) -> (TaskState, Option<TaskExit>) {
    if !folder.join("claim").exists() && !folder.join("exit").exists() {
        return (TaskState::Starting, None);
    }
    match find(folder.to_owned()).await {
        Some(Found::Running(_)) => (TaskState::Running, None),
        Some(Found::Ended(exit)) => {
            let seen = TaskExit::seen(exit.code, exit.signal);
            (TaskState::Ended, Some(seen))
        }
        _ => (TaskState::Unknown, None),
    }
}

async fn find(folder: PathBuf) -> Option<Found> {
    let find = move || task::find(&folder, None);
    tokio::task::spawn_blocking(find).await.ok()?.ok()
}

/// The command line, from the message that called for it.
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

/// Ends one task, or all tasks of an agent; those that it ended.
pub async fn stop(daemon: &Arc<Daemon>, which: &str) -> Result<Tasks> {
    if let Ok(id) = which.parse::<TaskId>() {
        let all = list_all(daemon).await?.tasks;
        if let Some(found) = all.into_iter().find(|task| task.id == id) {
            let desk = daemon.desk(found.agent).await?;
            return end_these(daemon, &desk, vec![found]).await;
        }
        if daemon.find(which).await.is_err() {
            let what = format!("no background task {id}");
            let problem = Problem::new(Kind::NotFound, what);
            return Err(problem.next("`agentd tasks` shows those that run"));
        }
    }
    let desk = daemon.named(which).await?;
    let tasks = list(daemon, &desk).await.tasks;
    end_these(daemon, &desk, tasks).await
}

async fn end_these(daemon: &Arc<Daemon>, desk: &Arc<Desk>, tasks: Vec<Task>) -> Result<Tasks> {
    let mut ended = Tasks::default();
    for mut task in tasks {
        let folder = daemon.layout.task_folder(desk.id, task.id);
        task.exit = Some(end(folder.clone(), GRACE).await);
        (task.state, task.running) = (TaskState::Ended, false);
        task.output_bytes = fs::metadata(folder.join("output")).map_or(0, |it| it.len());
        let exit = task.exit.unwrap_or(TaskExit::Unknown);
        said(desk, task.id, exit).await?;
        ended.tasks.push(task);
    }
    Ok(ended)
}

/// The agent's process sees that a task has ended, and says so when it fits. Where there is none, we do.
async fn said(desk: &Desk, id: TaskId, exit: TaskExit) -> Result<()> {
    let is_said = desk.within(SAID, |guard| {
        let is_known = guard.state.tasks.running().any(|(known, _)| *known == id);
        (!is_known || guard.process.is_none()).then_some(!is_known)
    });
    match is_said.await {
        Some(false) => note_end(desk, id, exit).await,
        // A turn under way may keep it from saying so for a while; it will.
        Some(true) | None => Ok(()),
    }
}

async fn note_end(desk: &Desk, id: TaskId, exit: TaskExit) -> Result<()> {
    let mut guard = desk.lock().await;
    if !guard.state.tasks.running().any(|(known, _)| *known == id) {
        return Ok(());
    }
    let how = match exit {
        TaskExit::Code { code } => format!("ended with exit code {code}"),
        TaskExit::Signal { signal } => format!("was ended, with signal {signal}"),
        TaskExit::NotStarted => "was never started".to_owned(),
        TaskExit::Unknown => "is gone, and nobody saw how it ended".to_owned(),
    };
    let cause = NoticeCause::TaskEnded;
    let text = format!("Background task {id} {how}.");
    let bodies: [Body; 2] = [
        TaskEnded { task: id, exit }.into(),
        Notice { cause, text }.into(),
    ];
    guard.note(bodies).await.map(drop)
}

/// Kills all that go on in the background, and says so in the journal. No process runs the agent.
pub async fn kill_all(daemon: &Arc<Daemon>, desk: &Arc<Desk>) -> Result<Vec<TaskId>> {
    let running: Vec<TaskId> = {
        let guard = desk.lock().await;
        guard.state.tasks.running().map(|(id, _)| *id).collect()
    };
    for id in &running {
        let folder = daemon.layout.task_folder(desk.id, *id);
        let exit = end(folder, Duration::ZERO).await;
        note_end(desk, *id, exit).await?;
    }
    Ok(running)
}

/// Asked first, killed after the grace.
async fn end(folder: PathBuf, grace: Duration) -> TaskExit {
    let found = match find(folder).await {
        Some(Found::Running(running)) => {
            // One that is gone by now has ended.
            if !grace.is_zero() {
                drop(running.stop());
            }
            match tokio::time::timeout(grace, running.ended()).await {
                Ok(found) => found.ok(),
                Err(_) => {
                    drop(running.kill());
                    running.ended().await.ok()
                }
            }
        }
        found => found,
    };
    match found {
        Some(Found::Ended(exit)) => TaskExit::seen(exit.code, exit.signal),
        Some(Found::NeverStarted) => TaskExit::NotStarted,
        _ => TaskExit::Unknown,
    }
}
