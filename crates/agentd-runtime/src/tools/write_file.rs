//! `write_file`: writes a whole file.

use super::blocking::{Cancelled, Stop};
use super::context::{ToolContext, Within};
use super::escalate::{Asked, ESCALATE, NEEDS};
use super::failure::Failure;
use super::file_history;
use super::file_work::{Ended, FileWork, Left};
use super::grant::Paths;
use super::hash;
use super::known_content::Wanted;
use super::named_files;
use super::replace::{Target, make_parents};
use super::replaced::{Replaced, Summary, fact};
use super::tool::{Job, Start, Tool, change_files, prepare_in};
use super::traits::Traits;
use agentd_core::event::FileChange;
use agentd_core::id::CallId;
use agentd_core::permission::Subject;
use agentd_core::recover::CallFact;
use agentd_core::secrets::MARK;
use agentd_core::turn::Finished;
use agentd_core::window::SeenFiles;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
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
        named_files::one(context, &arguments.file_path, arguments.escalate.as_deref())
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
        named_files::checked_first(context, &[&arguments.file_path], escalate)
    }

    async fn prepare(
        context: &Arc<ToolContext>,
        arguments: Arguments,
        seen: &SeenFiles,
    ) -> Result<Start, Failure> {
        refuse_mark("content", &arguments.content)?;
        let escalation = context.escalation(Self::asked(&arguments))?;
        let work = Prepare {
            file_path: arguments.file_path,
            after: hash::of(arguments.content.as_bytes()),
            seen: seen.clone(),
        };
        prepare_in(context, escalation, work).await
    }

    async fn run(job: Job<Arguments>, cancelled: Cancelled) -> Finished {
        let Some(change) = job.started.change else {
            let text = "The start of this call was not recorded; nothing was written.";
            return Failure::new(text).into();
        };
        let escalation = match job.context.escalation(Self::asked(&job.arguments)) {
            Ok(escalation) => escalation,
            Err(failure) => return failure.into(),
        };
        let write = Write {
            call: job.call,
            change,
            file_path: job.arguments.file_path,
            content: job.arguments.content,
        };
        let look = write.replaced();
        change_files(job.context, escalation, &cancelled, write, look).await
    }

    async fn find(job: Job<Arguments>) -> CallFact {
        let Some(change) = job.started.change else {
            return CallFact::Unknown;
        };
        let Ok(escalation) = job.context.escalation(Self::asked(&job.arguments)) else {
            return CallFact::Unknown;
        };
        let length = job.arguments.content.len();
        let look = Replaced {
            path: job.arguments.file_path,
            call: job.call,
            change,
            said: Summary::Wrote { length },
        };
        fact(job.context, escalation, look).await
    }
}

/// Checks that the file may get a content with this hash.
#[derive(Serialize, Deserialize)]
pub(super) struct Prepare {
    file_path: String,
    after: String,
    seen: SeenFiles,
}

impl FileWork for Prepare {
    const NAME: &'static str = "prepare_write";
    type Report = Start;

    fn carry_out(&self, context: Within<'_>, _stop: &Stop) -> Result<Start, Failure> {
        let target = Target::of(context, &self.file_path)?;
        target.check()?;
        let found = file_history::find(context, &target)?;
        let is_change = found.hash.as_ref() != Some(&self.after);
        if let Some(now) = found.hash.as_deref().filter(|_| is_change) {
            let wanted = Wanted {
                context: context.context,
                target: &target,
                now,
                seen: &self.seen,
                escalation: context.escalation,
            };
            wanted.check()?;
        }
        let before = found.before.filter(|_| is_change);
        let after = self.after.clone();
        Ok(Start::change(context, &target, found.hash, after, before))
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Write {
    call: CallId,
    change: FileChange,
    file_path: String,
    content: String,
}

impl Write {
    fn replaced(&self) -> Replaced {
        Replaced {
            path: self.file_path.clone(),
            call: self.call.clone(),
            change: self.change.clone(),
            said: self.said(),
        }
    }

    const fn said(&self) -> Summary {
        Summary::Wrote {
            length: self.content.len(),
        }
    }
}

impl FileWork for Write {
    const NAME: &'static str = "write";
    type Report = Ended;

    fn carry_out(&self, context: Within<'_>, _stop: &Stop) -> Result<Ended, Failure> {
        let change = &self.change;
        let target = Target::of(context, &self.file_path)?;
        let content = self.content.as_bytes();
        target.check()?;
        target.check_unchanged(change)?;
        if change.before.as_ref() != Some(&change.after) {
            make_parents(&target.path)
                .map_err(|error| target.cannot("create the directory of", &error))?;
            target.replace(&self.call, content)?;
        }
        let text = self.said().of(&target.name, change);
        let left = Left::wrote(context, &target.path, &change.after, Some(&self.content));
        Ok(Ended::new(target.written(change, text), vec![left]))
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
