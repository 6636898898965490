//! `write_file`: writes a whole file.

use super::blocking::{self, Cancelled};
use super::context::ToolContext;
use super::escalate::{Asked, ESCALATE, Escalation, NEEDS};
use super::failure::Failure;
use super::file_history;
use super::grant::Paths;
use super::known_content::Wanted;
use super::output::number;
use super::replace::{self, Given, Target, make_parents};
use super::tool::{Job, Start, Tool};
use super::traits::Traits;
use super::{hash, paths};
use agentd_core::event::FileChange;
use agentd_core::permission::Subject;
use agentd_core::recover::CallFact;
use agentd_core::secrets::MARK;
use agentd_core::turn::Finished;
use agentd_core::window::SeenFiles;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) struct WriteFile;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    file_path: String,
    content: String,
    #[serde(default)]
    escalate: Option<String>,
    #[serde(default)]
    needs: Option<Vec<String>>,
}

#[async_trait]
impl Tool for WriteFile {
    const NAME: &'static str = "write_file";
    const TRAITS: Traits = Traits {
        parallel: false,
        idempotent: true,
        approval: true,
    };
    type Arguments = Arguments;

    fn description() -> String {
        "Creates a file, with its parent directories, or replaces the whole content of an existing file. Use it \
         for new files and complete rewrites; to change a part of a file, use edit_file. An existing file must be \
         read with read_file first, so that nothing is lost that you have not seen."
            .into()
    }

    fn parameters() -> Value {
        json!({
            "type": "object",
            "properties": {
                "file_path": {
                    "type": "string",
                    "description": "The file: an absolute path, or relative to the working directory."
                },
                "content": {
                    "type": "string",
                    "description": "The whole content of the file, not only the part that changes."
                },
                "escalate": {"type": "string", "description": ESCALATE},
                "needs": {"type": "array", "items": {"type": "string"}, "description": NEEDS}
            },
            "required": ["file_path", "content"],
            "additionalProperties": false
        })
    }

    fn subjects(context: &ToolContext, arguments: &Arguments) -> Result<Vec<Subject>, Failure> {
        paths::named(&context.cwd, &arguments.file_path)
    }

    const PATHS: Paths = Paths::MayBeNew;

    fn changes(arguments: &Arguments) -> Vec<String> {
        vec![arguments.file_path.clone()]
    }

    fn asked(arguments: &Arguments) -> Asked<'_> {
        Asked::new(&arguments.escalate, &arguments.needs)
    }

    fn checked_first(context: &ToolContext, arguments: &Arguments) -> Option<Vec<Subject>> {
        let escalate = arguments.escalate.as_deref();
        paths::checked_first(&context.cwd, &arguments.file_path, escalate)
    }

    async fn prepare(
        context: &Arc<ToolContext>,
        arguments: Arguments,
        seen: &SeenFiles,
    ) -> Result<Start, Failure> {
        refuse_mark("content", &arguments.content)?;
        let (context, seen) = (Arc::clone(context), seen.clone());
        let start = blocking::whole(move || {
            let escalation = context.escalation(Self::asked(&arguments))?;
            context.within_of(&escalation, || {
                let target = Target::of(context.under(&escalation), &arguments.file_path)?;
                target.check()?;
                let found = file_history::find(&context, &target)?;
                let after = hash::of(arguments.content.as_bytes());
                let is_change = found.hash.as_ref() != Some(&after);
                if let Some(now) = found.hash.as_deref().filter(|_| is_change) {
                    let wanted = Wanted {
                        context: &context,
                        target: &target,
                        now,
                        seen: &seen,
                        escalation: &escalation,
                    };
                    wanted.check()?;
                }
                let before = found.before.filter(|_| is_change);
                Ok(Start::change(&target, found.hash, after, before))
            })
        });
        start.await?
    }

    async fn run(job: Job<Arguments>, cancelled: Cancelled) -> Finished {
        match job.context.escalation(Self::asked(&job.arguments)) {
            Ok(escalation) => job.change_files(escalation, &cancelled, write).await,
            Err(failure) => failure.into(),
        }
    }

    async fn find(job: Job<Arguments>) -> CallFact {
        let length = job.arguments.content.len();
        let Ok(escalation) = job.context.escalation(Self::asked(&job.arguments)) else {
            return CallFact::Unknown;
        };
        let file = Given {
            escalation,
            path: job.arguments.file_path,
        };
        let said = move |name: &str, change: &FileChange| summary(name, length, change);
        replace::fact(job.context, file, job.call, job.started.change, said).await
    }
}

fn write(job: &Job<Arguments>, escalation: &Escalation) -> Result<Finished, Failure> {
    let Some(change) = &job.started.change else {
        return Err(Failure::new(
            "The start of this call was not recorded; nothing was written.",
        ));
    };
    let target = Target::of(job.context.under(escalation), &job.arguments.file_path)?;
    let content = job.arguments.content.as_bytes();
    target.check()?;
    target.check_unchanged(change)?;
    if change.before.as_ref() != Some(&change.after) {
        make_parents(&target.path)
            .map_err(|error| target.cannot("create the directory of", &error))?;
        target.replace(&job.call, content)?;
    }
    let text = summary(&target.name, content.len(), change);
    job.context.contents.keep(&change.after, content);
    job.context.scans.wrote(&target.path, &change.after);
    Ok(target.written(change, text))
}

fn summary(name: &str, length: usize, change: &FileChange) -> String {
    let length = number(length as u64);
    match &change.before {
        None => format!("Wrote {length} bytes to {name}, a new file."),
        Some(before) if *before == change.after => {
            format!("{name} already has this content ({length} bytes).")
        }
        Some(_) => format!("Wrote {length} bytes to {name}."),
    }
}

/// A text with the mark was redacted before the model saw it. Writing it would overwrite the secret with the mark.
pub(super) fn refuse_mark(argument: &str, text: &str) -> Result<(), Failure> {
    if !text.contains(MARK) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "`{argument}` contains `{MARK}`, which stands for a secret that was not shown to you. Writing it \
         would destroy the secret; nothing was written. Change only the text around it."
    )))
}

#[cfg(test)]
mod tests;
