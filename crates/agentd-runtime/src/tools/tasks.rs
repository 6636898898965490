//! The tasks of an agent: finding them, waiting for them, ending them, and describing how they ended.

use super::blocking;
use super::context::ToolContext;
use super::denied::Actor;
use super::ended_tasks::REMOVED;
use super::escalate::Escalation;
use super::failure::Failure;
use super::output;
use agentd_core::event::TaskExit;
use agentd_core::id::{BootId, TaskId};
use agentd_core::message::CallOutcome;
use agentd_core::private_home;
use agentd_process::task::{self, Exit, Found, Task};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much output the model is shown of a background task that ended.
const LAST_BYTES: u64 = 1024;

/// The task with an id that the model gave. Only tasks of this agent are found.
pub(super) fn named(context: &ToolContext, text: &str) -> Result<TaskId, Failure> {
    let id = text.trim().parse::<TaskId>();
    let known = id
        .as_ref()
        .ok()
        .copied()
        .filter(|task| context.task_dir(*task).is_dir());
    known.ok_or_else(|| {
        let removed = id.map_or_else(|_| String::new(), |_| format!(" {REMOVED}"));
        Failure::new(format!(
            "Unknown task `{text}`; `task` must be an id that shell returned for a background command.{removed}"
        ))
    })
}

/// The state of a task. A task that has not started is prevented from starting.
pub(super) async fn find(
    context: &ToolContext,
    task: TaskId,
    boot: Option<BootId>,
) -> Result<Found, Failure> {
    let dir = context.task_dir(task);
    // A task of an earlier boot, or of a home that this one is a copy of, cannot be running.
    let is_of_now = boot.is_none_or(|boot| boot == context.boot);
    let found = blocking::whole(move || match is_of_now {
        true => task::find(&dir, None),
        false => task::find_ended(&dir),
    });
    found.await?.map_err(|error| cannot_tell(&error))
}

/// Withdraws a task that has not started; otherwise returns its state.
pub(super) async fn withdraw(context: &ToolContext, task: TaskId) -> Result<Found, Failure> {
    let dir = context.task_dir(task);
    let found = blocking::whole(move || task::withdraw(&dir));
    found.await?.map_err(|error| cannot_tell(&error))
}

/// The state of a task, without preventing its start; `None` if it has not started.
pub(super) async fn look(context: &ToolContext, task: TaskId) -> Result<Option<Found>, Failure> {
    match has_begun(&context.task_dir(task)) {
        true => find(context, task, None).await.map(Some),
        false => Ok(None),
    }
}

fn has_begun(dir: &Path) -> bool {
    dir.join("claim").exists() || dir.join("exit").exists()
}

/// The tasks that are running.
pub(super) async fn running(context: &ToolContext) -> Result<Vec<TaskId>, Failure> {
    let tasks = context.state.join("tasks");
    blocking::whole(move || {
        let mut running = Vec::new();
        for entry in fs::read_dir(&tasks).into_iter().flatten().flatten() {
            let id = entry.file_name().to_str().and_then(|it| it.parse().ok());
            let Some(id) = id else { continue };
            let dir = entry.path();
            // A task that has ended or has not started is skipped.
            if !has_begun(&dir) || dir.join("exit").exists() {
                continue;
            }
            if let Ok(Found::Running(_)) = task::find(&dir, None) {
                running.push(id);
            }
        }
        running.sort();
        running
    })
    .await
}

/// Ends a task and all its processes: SIGTERM first, SIGKILL after the grace period. `None` if it has not ended within
/// `patience` after that.
pub(super) async fn end(task: &Task, grace: Duration, patience: Duration) -> Option<Found> {
    // One that is gone by now has ended.
    drop(task.stop());
    if let Ok(found) = tokio::time::timeout(grace, task.ended()).await {
        return found.ok();
    }
    drop(task.kill());
    tokio::time::timeout(patience, task.ended())
        .await
        .ok()?
        .ok()
}

/// Waits for the end of a background task; returns how it ended and the text for the model.
pub(super) async fn until_ended(
    context: &ToolContext,
    task: TaskId,
    boot: BootId,
) -> (TaskExit, String) {
    let found = match find(context, task, Some(boot)).await {
        Ok(Found::Running(running)) => {
            let ended = running.ended().await;
            ended.map_err(|error| cannot_tell(&error))
        }
        other => other,
    };
    let (mut has_failed, mut in_own_home) = (false, Vec::new());
    let (exit, how) = match found {
        Ok(Found::Ended(exit)) => {
            has_failed = outcome(&exit) == CallOutcome::Error;
            let seen = TaskExit::seen(exit.code, exit.signal);
            let how = ended_with(&exit);
            in_own_home = exit.in_own_home;
            (seen, how)
        }
        Ok(Found::NeverStarted) => (TaskExit::NotStarted, "was never started".to_owned()),
        Ok(Found::Running(_) | Found::Unknown) => {
            let how = "is gone; how it ended is unknown";
            (TaskExit::Unknown, how.to_owned())
        }
        Err(failure) => {
            let why = failure.text().trim_end_matches('.');
            let how = format!("has an unknown outcome ({why})");
            (TaskExit::Unknown, how)
        }
    };
    let path = output_of(context, task);
    let last = blocking::whole(move || output::tail_of_file(&path, LAST_BYTES)).await;
    let last = last.ok().and_then(Result::ok).unwrap_or_default();
    let last = match last.trim() {
        "" => "It had no output.".to_owned(),
        last => format!("Its last output:\n{last}"),
    };
    let denied = context.denied(Actor::Command, &last, &Escalation::None);
    let denied = denied.filter(|_| has_failed);
    let written = private_home::note(&in_own_home);
    let written = written.map(|note| context.secrets.redact(&note));
    let notes: String = denied
        .into_iter()
        .chain(written)
        .map(|note| format!("\n{note}"))
        .collect();
    (exit, format!("Background task {task} {how}. {last}{notes}"))
}

/// The file with the output of a task.
pub(super) fn output_of(context: &ToolContext, task: TaskId) -> PathBuf {
    context.task_dir(task).join("output")
}

/// How a task ended; follows "the task …".
pub(super) fn ended_with(exit: &Exit) -> String {
    if let Some(error) = &exit.error {
        return format!("could not be started: {error}");
    }
    let how = match (exit.code, exit.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => return "was stopped before it started".to_owned(),
    };
    if exit.timed_out {
        format!("timed out and was ended, with {how}")
    } else if exit.stopped {
        format!("was stopped, with {how}")
    } else {
        format!("ended with {how}")
    }
}

pub(super) fn outcome(exit: &Exit) -> CallOutcome {
    if exit.stopped {
        CallOutcome::Interrupted
    } else if exit.code == Some(0) && !exit.timed_out && exit.error.is_none() {
        CallOutcome::Ok
    } else {
        CallOutcome::Error
    }
}

fn cannot_tell(error: &agentd_process::Error) -> Failure {
    Failure::new(format!("Cannot read the state of the task: {error}."))
}

/// A duration as text.
pub(super) fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 if ms.is_multiple_of(1_000) => format!("{} s", ms / 1_000),
        1_000..120_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}
