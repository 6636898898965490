//! `task_stop`: ends a background task and all its processes.

use super::blocking::Cancelled;
use super::context::ToolContext;
use super::failure::{Failure, done};
use super::tasks;
use super::tool::{Job, Tool};
use super::traits::Traits;
use agentd_core::permission::Subject;
use agentd_core::turn::Finished;
use agentd_process::task::{Found, Task};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// A little longer than the shim's own grace period for a command.
const GRACE: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(5);
const HURRY: Duration = Duration::from_millis(500);

pub(super) struct TaskStop;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    task: String,
}

#[async_trait]
impl Tool for TaskStop {
    const NAME: &'static str = "task_stop";
    const TRAITS: Traits = Traits {
        parallel: false,
        idempotent: true,
        approval: false,
    };
    type Arguments = Arguments;

    fn description() -> String {
        "Ends a background task and all its processes, and returns how it ended. Stop what you no longer need: \
         tasks keep running after the turn."
            .into()
    }

    fn parameters() -> Value {
        json!({
            "type": "object",
            "properties": {
                "task": {"type": "string", "description": "The task id that shell returned."}
            },
            "required": ["task"],
            "additionalProperties": false
        })
    }

    fn subjects(_context: &ToolContext, arguments: &Arguments) -> Result<Vec<Subject>, Failure> {
        Ok(vec![Subject::name(arguments.task.trim())])
    }

    async fn run(job: Job<Arguments>, cancelled: Cancelled) -> Finished {
        done(stop(&job, cancelled).await)
    }
}

async fn stop(job: &Job<Arguments>, cancelled: Cancelled) -> Result<String, Failure> {
    let id = tasks::named(&job.context, &job.arguments.task)?;
    let (found, was_running) = match tasks::withdraw(&job.context, id).await? {
        Found::Running(task) => (end(&task, cancelled).await, true),
        found => (Some(found), false),
    };
    Ok(match found {
        Some(Found::Ended(exit)) if was_running => {
            format!("Task {id} {}.", tasks::ended_with(&exit))
        }
        Some(Found::Ended(exit)) => {
            let how = tasks::ended_with(&exit);
            format!("Task {id} had already ended: it {how}.")
        }
        Some(Found::NeverStarted) => format!("Task {id} had not started and was cancelled."),
        Some(Found::Running(_) | Found::Unknown) => {
            format!("Task {id} is gone; how it ended is unknown.")
        }
        None => {
            return Err(Failure::new(format!(
                "Task {id} was killed, but has not ended yet."
            )));
        }
    })
}

/// If the call is cancelled, the task is killed without a grace period.
async fn end(task: &Task, mut cancelled: Cancelled) -> Option<Found> {
    tokio::select! {
        found = tasks::end(task, GRACE, PATIENCE) => found,
        () = cancelled.wait() => tasks::end(task, Duration::ZERO, HURRY).await,
    }
}
