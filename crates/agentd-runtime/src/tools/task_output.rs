//! `task_output`: shows what a background task has written so far.

use super::arguments::whole;
use super::blocking::{self, Cancelled};
use super::context::ToolContext;
use super::denied::Actor;
use super::escalate::Escalation;
use super::failure::{Failure, done};
use super::output::{self, Rest, number};
use super::tasks::{self, span};
use super::tool::{Job, Tool};
use super::traits::Traits;
use agentd_core::message::CallOutcome;
use agentd_core::permission::Subject;
use agentd_core::private_home;
use agentd_core::turn::Finished;
use agentd_process::task::Found;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs;

pub(super) struct TaskOutput;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    task: String,
    #[serde(default, deserialize_with = "whole")]
    offset: Option<u64>,
}

#[async_trait]
impl Tool for TaskOutput {
    const NAME: &'static str = "task_output";
    const TRAITS: Traits = Traits {
        parallel: true,
        idempotent: true,
        approval: false,
    };
    type Arguments = Arguments;

    fn description() -> String {
        "Shows what a background task has written so far, and whether it is running or how it ended. Do not \
         call it repeatedly to wait for the end of a task: a message tells you when it ends."
            .into()
    }

    fn parameters() -> Value {
        json!({
            "type": "object",
            "properties": {
                "task": {"type": "string", "description": "The task id that shell returned."},
                "offset": {
                    "type": "integer",
                    "description": "Show the output after this many bytes. Default: all of it, or the \
                                    beginning and the end if it is long."
                }
            },
            "required": ["task"],
            "additionalProperties": false
        })
    }

    fn subjects(_context: &ToolContext, arguments: &Arguments) -> Result<Vec<Subject>, Failure> {
        Ok(vec![Subject::name(arguments.task.trim())])
    }

    async fn run(job: Job<Arguments>, _cancelled: Cancelled) -> Finished {
        done(show(&job).await)
    }
}

async fn show(job: &Job<Arguments>) -> Result<String, Failure> {
    let task = tasks::named(&job.context, &job.arguments.task)?;
    let (mut has_failed, mut written_home) = (false, None);
    let state = match tasks::look(&job.context, task).await? {
        None => "is about to start".to_owned(),
        Some(Found::Running(_)) => "is running".to_owned(),
        Some(Found::Ended(exit)) => {
            has_failed = tasks::outcome(&exit) == CallOutcome::Error;
            written_home = private_home::note(&exit.in_own_home);
            let after = span(exit.duration_ms);
            format!("{} after {after}", tasks::ended_with(&exit))
        }
        Some(Found::NeverStarted) => "was never started".to_owned(),
        Some(Found::Unknown) => "is gone; how it ended is unknown".to_owned(),
    };
    let path = tasks::output_of(&job.context, task);
    let (offset, limit) = (job.arguments.offset, job.context.output_bytes);
    let read = blocking::whole(move || {
        let written = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let shown = match offset {
            _ if written == 0 => Ok(String::new()),
            None => output::of_file(&path, limit, &Rest::OfTask),
            Some(offset) if offset >= written => Ok(format!("[nothing after offset {offset}]")),
            Some(offset) => output::part_of_file(&path, offset, limit).map(|(part, next)| {
                let on = match next < written {
                    true => format!("continue with offset {next}"),
                    false => {
                        format!("this is the end so far; later output begins at offset {next}")
                    }
                };
                format!("[bytes {offset} to {next}; {on}]\n{part}")
            }),
        };
        (written, shown)
    });
    let (written, shown) = read.await?;
    let shown = shown.map_err(|error| Failure::new(format!("Cannot read its output: {error}.")))?;
    let mut head = format!(
        "Task {task} {state}; it has written {} bytes.",
        number(written)
    );
    if written >= job.context.kept_bytes {
        head.push_str(" That is the limit (`task_output_bytes`); further output is discarded.");
    }
    let denied = job
        .context
        .denied(Actor::Command, &shown, &Escalation::None);
    let denied = denied.filter(|_| has_failed);
    let parts = [head, shown].into_iter().chain(denied).chain(written_home);
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    Ok(parts.join("\n"))
}
