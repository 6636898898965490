//! How `shell` is declared to models: with a command line, or with a list of words. Both are the same tool.

use super::super::blocking::Cancelled;
use super::super::context::ToolContext;
use super::super::escalate::{Asked, ESCALATE, NEEDS};
use super::super::failure::Failure;
use super::super::tool::{Job, Start, Tool};
use super::super::traits::Traits;
use super::{Arguments, Shell};
use agentd_core::permission::Subject;
use agentd_core::recover::CallFact;
use agentd_core::turn::Finished;
use agentd_core::window::SeenFiles;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;

/// What both forms have in common.
const BEHAVIOUR: &str = "Use it for builds, tests, git and other programs. To read, find and change files, use the \
     tools for files instead of cat, grep, find, sed and echo. Each call starts a new shell in the working directory: \
     `cd` and variables do not carry over to the next call. There is no terminal and no input, so pass the options \
     that keep a program from asking. When the command ends, processes that it left running are ended too: set \
     `run_in_background` for a server, or for anything that takes longer than a few minutes. The call then returns a \
     task id at once, task_output shows the output, task_stop ends the task, and a message tells you when it ends. \
     Long output is cut in the middle, and the result says how to see the rest.";

const TIMEOUT: &str = "The command is ended after this time. Default: 120000, or no limit in the background. At most \
     3600000.";
const BACKGROUND: &str =
    "Do not wait for the command; it keeps running after this turn. Default: false.";
const PURPOSE: &str = "A few words about the purpose, shown to the user.";

pub(super) fn description() -> String {
    format!(
        "Runs a command in a shell and returns what it wrote to stdout and stderr, and its exit code if it failed. \
         {BEHAVIOUR}"
    )
}

pub(super) fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "description": "The command line, for bash. Join commands that depend on each other with `&&`."
            },
            "timeout_ms": {"type": "integer", "description": TIMEOUT},
            "run_in_background": {"type": "boolean", "description": BACKGROUND},
            "cwd": {
                "type": "string",
                "description": "The directory to run the command in, instead of `cd`. Default: the working directory."
            },
            "escalate": {"type": "string", "description": ESCALATE},
            "needs": {"type": "array", "items": {"type": "string"}, "description": NEEDS},
            "description": {"type": "string", "description": PURPOSE}
        },
        "required": ["command"],
        "additionalProperties": false
    })
}

/// `shell` for models that were trained to give a command as a list of words.
pub(in super::super) struct ShellWords;

#[async_trait]
impl Tool for ShellWords {
    const NAME: &'static str = Shell::NAME;
    const TRAITS: Traits = Shell::TRAITS;
    type Arguments = Arguments;

    fn description() -> String {
        format!(
            "Runs a program and returns what it wrote to stdout and stderr, and its exit code if it failed. `command` \
             is the program and its arguments, each as a word; for pipes, variables and lists of commands, use \
             [\"bash\", \"-lc\", \"the command line\"]. Set `workdir` instead of using cd. {BEHAVIOUR}"
        )
    }

    fn parameters() -> Value {
        json!({
            "type": "object",
            "properties": {
                "command": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "The program and its arguments."
                },
                "workdir": {
                    "type": "string",
                    "description": "The directory to run the command in. Default: the working directory."
                },
                "timeout_ms": {"type": "integer", "description": TIMEOUT},
                "run_in_background": {"type": "boolean", "description": BACKGROUND},
                "escalate": {"type": "string", "description": ESCALATE},
                "needs": {"type": "array", "items": {"type": "string"}, "description": NEEDS},
                "description": {"type": "string", "description": PURPOSE}
            },
            "required": ["command"],
            "additionalProperties": false
        })
    }

    fn subjects(context: &ToolContext, arguments: &Arguments) -> Result<Vec<Subject>, Failure> {
        Shell::subjects(context, arguments)
    }

    fn asked(arguments: &Arguments) -> Asked<'_> {
        Shell::asked(arguments)
    }

    async fn prepare(
        context: &Arc<ToolContext>,
        arguments: Arguments,
        seen: &SeenFiles,
    ) -> Result<Start, Failure> {
        Shell::prepare(context, arguments, seen).await
    }

    async fn run(job: Job<Arguments>, cancelled: Cancelled) -> Finished {
        Shell::run(job, cancelled).await
    }

    async fn find(job: Job<Arguments>) -> CallFact {
        Shell::find(job).await
    }

    async fn resume(job: Job<Arguments>, cancelled: Cancelled) -> Finished {
        Shell::resume(job, cancelled).await
    }
}
