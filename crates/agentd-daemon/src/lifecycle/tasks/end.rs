//! Stops background tasks on request.

use super::{command, find, list, list_all, output_bytes};
use crate::agent_name;
use crate::daemon::{AgentHandle, Daemon};
use crate::error::{Error, Kind, Result};
use crate::id_prefix;
use crate::lifecycle::ops::Asked;
use crate::lifecycle::stretch;
use crate::spawn::blocking;
use agentd_client::api::{AgentRef, Task, TaskState, Tasks};
use agentd_core::event::{Body, Notice, NoticeCause, OpReceipt, OpVerb, TaskEnded, TaskExit};
use agentd_core::id::{IdPrefix, OpId, Seq, TaskId};
use agentd_process::task::Found;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a task may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(3);
/// How long the agent's process may take to record the end.
const SAID: Duration = Duration::from_secs(2);

/// How a task ended.
struct End {
    exit: TaskExit,
    /// It was running when it was told to end, and a signal ended it or its exit is unknown.
    killed: bool,
}

/// Ends one task, or all tasks of an agent, and returns them.
pub async fn stop(daemon: &Arc<Daemon>, which: &str, op: Option<OpId>) -> Result<Tasks> {
    let asked = Asked::new(op, OpVerb::StopTasks, &which)?;
    let which = &*whole(daemon, which).await?;
    let (handle, one) = owner(daemon, which, &asked).await?;
    let made = {
        let guard = handle.lock().await;
        guard.check_released()?;
        asked.made(&guard.state)?.cloned()
    };
    let running = list(&handle).await.tasks;
    let wanted = match made {
        Some(made) => match made.operation.receipt {
            OpReceipt::Tasks { tasks } => tasks,
            _ => Vec::new(),
        },
        None => {
            let tasks = to_end(one, &running);
            if !tasks.is_empty() {
                let receipt = OpReceipt::Tasks {
                    tasks: tasks.clone(),
                };
                handle.lock().await.note(asked.with(receipt)).await?;
            }
            tasks
        }
    };
    let mut ended = Tasks::default();
    for id in wanted {
        match running.iter().find(|task| task.id == id) {
            Some(task) => ended.tasks.push(end_this(&handle, task.clone()).await?),
            None => ended.tasks.extend(ended_before(&handle, id).await?),
        }
    }
    Ok(ended)
}

/// The id of the task that begins with the given text: a running one, or else one that has ended, for a request that is
/// sent again. Any other text is the name of an agent, or a whole id.
async fn whole(daemon: &Arc<Daemon>, given: &str) -> Result<String> {
    let is_name = daemon
        .store
        .find(&agent_name::canonical(given))
        .await?
        .is_some();
    let prefix = given.parse::<IdPrefix>().ok().filter(|_| !is_name);
    let Some(prefix) = prefix.filter(|prefix| prefix.whole::<TaskId>().is_none()) else {
        return Ok(given.to_owned());
    };
    let running = list_all(daemon).await?.tasks;
    let ids = running.iter().map(|task| task.id);
    if let Some(task) = id_prefix::only(&prefix, "task", ids)? {
        return Ok(task.to_string());
    }
    let layout = daemon.layout.clone();
    let ended = blocking(move || layout.all_tasks()).await;
    let ended = id_prefix::only(&prefix, "task", ended)?;
    Ok(ended.map_or_else(|| given.to_owned(), |task| task.to_string()))
}

/// The tasks to end. A single task that has ended since it was found stays the only one: it never means all tasks.
fn to_end(one: Option<TaskId>, running: &[Task]) -> Vec<TaskId> {
    match one {
        Some(one) => vec![one],
        None => running.iter().map(|task| task.id).collect(),
    }
}

/// The agent whose tasks are meant, and the task if a single one is meant.
async fn owner(
    daemon: &Arc<Daemon>,
    which: &str,
    asked: &Asked,
) -> Result<(AgentHandle, Option<TaskId>)> {
    let Ok(id) = which.parse::<TaskId>() else {
        return Ok((daemon.named(which).await?, None));
    };
    let all = list_all(daemon).await?.tasks;
    if let Some(found) = all.into_iter().find(|task| task.id == id) {
        return Ok((daemon.handle(found.agent.id).await?, Some(id)));
    }
    // A repeated request, for a task that this op has ended.
    let layout = daemon.layout.clone();
    if let Some(agent) = blocking(move || layout.agent_of_task(id)).await
        && let Ok(handle) = daemon.handle(agent).await
        && asked.is_made(&handle.lock().await.state)?
    {
        return Ok((handle, Some(id)));
    }
    // An agent's id has the same form as a task's.
    let handle = daemon.named(which).await.map_err(|_| {
        let what = format!("no background task {id}");
        let error = Error::new(Kind::NotFound, what);
        error.next("`agentd tasks` shows the running tasks")
    })?;
    Ok((handle, None))
}

async fn end_this(handle: &AgentHandle, mut task: Task) -> Result<Task> {
    let dir = handle.daemon.layout.task_dir(handle.id, task.id);
    let end = end(dir.clone(), GRACE).await;
    task.exit = Some(end.exit);
    (task.state, task.running) = (TaskState::Ended, false);
    task.output_bytes = output_bytes(&dir).await;
    said(handle, task.id, &end).await?;
    Ok(task)
}

/// A task that has ended, from the journal.
async fn ended_before(handle: &AgentHandle, id: TaskId) -> Result<Option<Task>> {
    let (head, name) = {
        let guard = handle.lock().await;
        (guard.state.head, guard.state.name.clone())
    };
    let mut task: Option<Task> = None;
    for event in stretch(&handle.daemon, handle.id, (Seq::ZERO, head)).await? {
        match &event.body {
            Body::TaskStarted(started) if started.task == id => {
                let ordinal = {
                    let guard = handle.lock().await;
                    let known = guard.state.tree.get(event.conversation);
                    known.map(|known| known.ordinal)
                };
                let dir = handle.daemon.layout.task_dir(handle.id, id);
                task = Some(Task {
                    id,
                    agent: AgentRef {
                        id: handle.id,
                        name: Some(name.clone()),
                    },
                    conversation: event.conversation,
                    ordinal,
                    turn: event.turn,
                    tool: started.tool.clone(),
                    command: command(&handle.daemon, handle.id, &started.call, event.seq).await,
                    started_at: event.at,
                    output_bytes: output_bytes(&dir).await,
                    state: TaskState::Ended,
                    running: false,
                    exit: None,
                });
            }
            Body::TaskEnded(ended) if ended.task == id => {
                if let Some(task) = &mut task {
                    task.exit = Some(ended.exit);
                }
            }
            _ => {}
        }
    }
    Ok(task)
}

/// Waits until the agent's process has recorded the end of a task. If there is no process, the daemon records it.
async fn said(handle: &AgentHandle, id: TaskId, end: &End) -> Result<()> {
    let is_said = handle.within(SAID, |guard| {
        let is_known = guard.state.tasks.running().any(|(known, _)| *known == id);
        (!is_known || guard.process.is_none()).then_some(!is_known)
    });
    match is_said.await {
        Some(false) => note_end(handle, id, end).await,
        // Recorded; or the process is in the middle of a turn, and records the end later.
        Some(true) | None => Ok(()),
    }
}

async fn note_end(handle: &AgentHandle, id: TaskId, end: &End) -> Result<()> {
    let mut guard = handle.lock().await;
    if !guard.state.tasks.running().any(|(known, _)| *known == id) {
        return Ok(());
    }
    let how = match end.exit {
        TaskExit::Code { code } => format!("ended with exit code {code}"),
        TaskExit::Signal { signal } => format!("was terminated by signal {signal}"),
        TaskExit::NotStarted => "was never started".to_owned(),
        TaskExit::Unknown => "is gone; how it ended is unknown".to_owned(),
    };
    let cause = NoticeCause::TaskEnded;
    let text = format!("Background task {id} {how}.");
    let ended = TaskEnded {
        task: id,
        exit: end.exit,
        killed: end.killed,
    };
    let bodies: [Body; 2] = [ended.into(), Notice { cause, text }.into()];
    guard.note(bodies).await.map(drop)
}

/// Kills all background tasks, records their ends, and returns the killed tasks, without those that had ended by
/// themselves. Called when no process runs the agent.
pub async fn kill_all(handle: &AgentHandle) -> Result<Vec<TaskId>> {
    let running: Vec<TaskId> = {
        let guard = handle.lock().await;
        guard.state.tasks.running().map(|(id, _)| *id).collect()
    };
    let mut killed = Vec::new();
    for id in running {
        let dir = handle.daemon.layout.task_dir(handle.id, id);
        let end = end(dir, Duration::ZERO).await;
        note_end(handle, id, &end).await?;
        killed.extend(end.killed.then_some(id));
    }
    Ok(killed)
}

/// Asks a task to stop, and kills it after the grace period. Without one, kills it at once.
async fn end(dir: PathBuf, grace: Duration) -> End {
    let (found, was_running) = match find(dir).await {
        Some(Found::Running(running)) => {
            // An error means that the task has ended.
            if !grace.is_zero() {
                drop(running.stop());
            }
            let found = match tokio::time::timeout(grace, running.ended()).await {
                Ok(found) => found.ok(),
                Err(_) => {
                    drop(running.kill());
                    running.ended().await.ok()
                }
            };
            (found, true)
        }
        found => (found, false),
    };
    let exit = match found {
        Some(Found::Ended(exit)) => TaskExit::seen(exit.code, exit.signal),
        Some(Found::NeverStarted) => TaskExit::NotStarted,
        _ => TaskExit::Unknown,
    };
    // A task with an exit code counts as ended by itself: it may have exited just before the signal.
    let killed = was_running && matches!(exit, TaskExit::Signal { .. } | TaskExit::Unknown);
    End { exit, killed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::id::{AgentId, ConversationId};
    use agentd_core::time::Timestamp;

    fn running(n: u8) -> Task {
        Task {
            id: TaskId::from_bytes([n; 16]),
            agent: AgentRef {
                id: AgentId::from_bytes([9; 16]),
                name: None,
            },
            conversation: ConversationId::from_bytes([9; 16]),
            ordinal: None,
            turn: None,
            tool: "shell".to_owned(),
            command: None,
            started_at: Timestamp(0),
            output_bytes: 0,
            state: TaskState::Running,
            running: true,
            exit: None,
        }
    }

    #[test]
    fn a_task_that_has_just_ended_does_not_mean_all_tasks() {
        let ended = TaskId::from_bytes([3; 16]);
        let tasks = [running(1), running(2)];
        assert_eq!(to_end(Some(ended), &tasks), [ended]);
        assert_eq!(to_end(Some(tasks[1].id), &tasks), [tasks[1].id]);
        assert_eq!(to_end(None, &tasks), [tasks[0].id, tasks[1].id]);
    }
}
