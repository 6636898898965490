//! Deletes the files of a purged conversation's tools and hooks, which contain text too.

use crate::daemon::Daemon;
use crate::layout::Layout;
use crate::spawn::blocking;
use agentd_core::event::Body;
use agentd_core::id::{AgentId, ConversationId, Seq};
use agentd_store::{ReadQuery, Store};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PAGE: usize = 500;

/// Removes the files of the tasks and calls that began in a conversation, except those of a task that is still running.
pub async fn remove(
    store: &dyn Store,
    layout: &Layout,
    agent: AgentId,
    conversation: ConversationId,
    running: &[agentd_core::id::TaskId],
) -> io::Result<()> {
    let outputs = layout.agent_dir(agent).join("outputs");
    // The variables that hooks set for tools.
    let mut paths: Vec<PathBuf> = vec![
        layout.env_file(agent, conversation),
        layout.sandboxed_env_file(agent, conversation),
    ];
    let mut calls = Vec::new();
    let mut at = Seq::ZERO;
    loop {
        let query = ReadQuery {
            conversation: Some(conversation),
            ..ReadQuery::all(agent, at, PAGE)
        };
        let page = store.read(query).await.map_err(io::Error::other)?;
        for event in &page.events {
            at = event.seq;
            if let Body::HookStarted(started) = &event.body {
                paths.push(outputs.join(format!("hook-{}.txt", started.hook)));
            }
            if let Body::CommandStarted(started) = &event.body {
                paths.push(layout.command_output(agent, started.command));
            }
            if let Body::ToolStarted(started) = &event.body {
                let task = started.task.filter(|task| !running.contains(task));
                paths.extend(task.map(|task| layout.task_dir(agent, task)));
                calls.push(started.call.to_string());
            }
        }
        if page.next.is_none() {
            break;
        }
    }
    let layout = layout.clone();
    blocking(move || {
        layout.remove_outer_dir(agent, conversation)?;
        for call in calls {
            paths.extend(files_of(&outputs, &call)?);
        }
        remove_paths(paths)
    })
    .await
}

fn remove_paths(paths: Vec<PathBuf>) -> io::Result<()> {
    for path in paths {
        let removed = match path.is_dir() {
            true => std::fs::remove_dir_all(&path),
            false => std::fs::remove_file(&path),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Removes everything that an archived agent has besides its journal: its directory, with its log, and its lock.
/// Nothing is removed while a process runs the agent; the next purge removes it.
pub async fn remove_all(daemon: &Arc<Daemon>, agent: AgentId) -> io::Result<()> {
    let daemon = Arc::clone(daemon);
    blocking(move || {
        if daemon.layout.holder(agent)?.is_some() {
            return Ok(());
        }
        daemon.tool_sockets.close(agent);
        daemon.layout.forget_agent(agent)
    })
    .await
}

/// Removes the directories that a purge has emptied.
pub async fn remove_empty(daemon: &Daemon, agent: AgentId) -> io::Result<()> {
    let dir = daemon.layout.agent_dir(agent);
    blocking(move || remove_empty_in(&dir)).await
}

fn remove_empty_in(dir: &Path) -> io::Result<()> {
    for name in ["outputs", "env", "tasks", "transcripts"] {
        match std::fs::remove_dir(dir.join(name)) {
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
                ) =>
            {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

/// The files that are named after a call.
fn files_of(dir: &Path, call: &str) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.file_stem().is_some_and(|stem| stem == call) {
            found.push(path);
        }
    }
    Ok(found)
}
