//! The processes that tools started: looked for, waited for, ended, and told of.

use super::blocking;
use super::context::ToolContext;
use super::denied::Actor;
use super::failure::Failure;
use super::output;
use agentd_core::event::TaskExit;
use agentd_core::id::{BootId, TaskId};
use agentd_core::message::CallOutcome;
use agentd_process::task::{self, Exit, Found, Task};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the model is shown of a task that ended while it did something else.
const LAST_BYTES: u64 = 1024;

/// The task of an id that the model gave. Only those of this agent are to be found.
pub(super) fn named(context: &ToolContext, text: &str) -> Result<TaskId, Failure> {
    let id = text.trim().parse::<TaskId>();
    let known = id.ok().filter(|task| context.task_dir(*task).is_dir());
    known.ok_or_else(|| {
        Failure::new(format!(
            "There is no task `{text}`; `task` is an id that shell returned for a background command."
        ))
    })
}

/// What became of a task. One that has not begun by now never will.
pub(super) async fn find(
    context: &ToolContext,
    task: TaskId,
    boot: Option<BootId>,
) -> Result<Found, Failure> {
    let dir = context.task_dir(task);
    // Before the machine was last started, or in a home that this one is a copy of.
    let is_of_now = boot.is_none_or(|boot| boot == context.boot);
    let found = blocking::whole(move || match is_of_now {
        true => task::find(&dir, None),
        false => task::find_ended(&dir),
    });
    found.await?.map_err(|error| cannot_tell(&error))
}

/// Takes a task back where it has not begun; otherwise says what became of it.
pub(super) async fn withdraw(context: &ToolContext, task: TaskId) -> Result<Found, Failure> {
    let dir = context.task_dir(task);
    let found = blocking::whole(move || task::withdraw(&dir));
    found.await?.map_err(|error| cannot_tell(&error))
}

/// What is known of a task, without keeping it from beginning: none where it has not.
pub(super) async fn look(context: &ToolContext, task: TaskId) -> Result<Option<Found>, Failure> {
    match has_begun(&context.task_dir(task)) {
        true => find(context, task, None).await.map(Some),
        false => Ok(None),
    }
}

fn has_begun(dir: &Path) -> bool {
    dir.join("claim").exists() || dir.join("exit").exists()
}

/// Those that run now.
pub(super) async fn running(context: &ToolContext) -> Result<Vec<TaskId>, Failure> {
    let tasks = context.state.join("tasks");
    blocking::whole(move || {
        let mut running = Vec::new();
        for entry in fs::read_dir(&tasks).into_iter().flatten().flatten() {
            let id = entry.file_name().to_str().and_then(|it| it.parse().ok());
            let Some(id) = id else { continue };
            let dir = entry.path();
            // What has ended, or not begun, is not looked for.
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

/// Ends it and all that it started: asked first, killed after the grace. None where it is not over
/// within the patience either.
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

/// Waits for the end of a background task; how it ended, and what the model is told.
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
    let mut has_failed = false;
    let (exit, how) = match found {
        Ok(Found::Ended(exit)) => {
            has_failed = outcome(&exit) == CallOutcome::Error;
            let seen = TaskExit::seen(exit.code, exit.signal);
            (seen, ended_with(&exit))
        }
        Ok(Found::NeverStarted) => (TaskExit::NotStarted, "was never started".to_owned()),
        Ok(Found::Running(_) | Found::Unknown) => {
            let how = "is gone, and nobody saw how it ended";
            (TaskExit::Unknown, how.to_owned())
        }
        Err(failure) => {
            let how = format!("cannot be told of: {}", failure.text());
            (TaskExit::Unknown, how)
        }
    };
    let path = output_of(context, task);
    let last = blocking::whole(move || output::tail_of_file(&path, LAST_BYTES)).await;
    let last = last.ok().and_then(Result::ok).unwrap_or_default();
    let last = match last.trim() {
        "" => "It wrote nothing.".to_owned(),
        last => format!("Its last output:\n{last}"),
    };
    let denied = context.denied(Actor::Command, &last);
    let denied = denied.filter(|_| has_failed);
    let denied = denied.map(|note| format!("\n{note}")).unwrap_or_default();
    (
        exit,
        format!("Background task {task} {how}. {last}{denied}"),
    )
}

/// Where all that it wrote is.
pub(super) fn output_of(context: &ToolContext, task: TaskId) -> PathBuf {
    context.task_dir(task).join("output")
}

/// How it ended, as in "the task …".
pub(super) fn ended_with(exit: &Exit) -> String {
    if let Some(error) = &exit.error {
        return format!("could not be started: {error}");
    }
    let how = match (exit.code, exit.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => return "was stopped before it began".to_owned(),
    };
    if exit.timed_out {
        format!("was ended after its time limit, with {how}")
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
    Failure::new(format!("It cannot be told what became of it: {error}."))
}

/// A span of time in words.
pub(super) fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 if ms.is_multiple_of(1_000) => format!("{} s", ms / 1_000),
        1_000..120_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}
