//! `edit_file`: replaces a string in a file.

mod closest;
mod find_text;

pub(super) use closest::closest;

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
use super::output::number;
use super::replace::Target;
use super::replaced::{Replaced, Summary, fact};
use super::tool::{Job, Start, Tool, change_files, prepare_in};
use super::traits::Traits;
use super::write_file::refuse_mark;
use agentd_core::event::FileChange;
use agentd_core::id::CallId;
use agentd_core::permission::Subject;
use agentd_core::recover::CallFact;
use agentd_core::secrets::MARK;
use agentd_core::turn::Finished;
use agentd_core::window::SeenFiles;
use async_trait::async_trait;
use find_text::Edit;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::{self, Read as _};
use std::sync::Arc;

/// A larger file is not edited: the whole file is held in memory and rewritten.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

pub(super) struct EditFile;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    file_path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: Option<bool>,
    #[serde(default)]
    escalate: Option<String>,
    #[serde(default)]
    needs: Option<Vec<String>>,
}

#[async_trait]
impl Tool for EditFile {
    const NAME: &'static str = "edit_file";
    const TRAITS: Traits = Traits {
        parallel: false,
        idempotent: false,
        approval: true,
    };
    type Arguments = Arguments;

    fn description() -> String {
        "Changes a part of an existing file: replaces `old_string` by `new_string`. The file must be read with \
         read_file first, and not have changed since; your own edits count as read. `old_string` must match the \
         file exactly, including indentation and line breaks, and must occur only once unless `replace_all` is \
         true: include enough of the surrounding lines. For several changes, make several calls."
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
                "old_string": {
                    "type": "string",
                    "description": "The text to replace, exactly as it is in the file."
                },
                "new_string": {
                    "type": "string",
                    "description": "The text to put in its place; empty to delete it."
                },
                "replace_all": {
                    "type": "boolean",
                    "description": "Replace every occurrence. Default: false."
                },
                "escalate": {"type": "string", "description": ESCALATE},
                "needs": {"type": "array", "items": {"type": "string"}, "description": NEEDS}
            },
            "required": ["file_path", "old_string", "new_string"],
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
        refuse_mark("new_string", &arguments.new_string)?;
        if arguments.old_string.contains(MARK) {
            return Err(Failure::new(format!(
                "`old_string` contains `{MARK}`, which stands for a secret that was not shown to you; the \
                 file has other text there. Use text next to it."
            )));
        }
        let escalation = context.escalation(Self::asked(&arguments))?;
        let work = Prepare {
            seen: seen.clone(),
            arguments,
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
        let look = replaced(&job.arguments, job.call.clone(), change.clone());
        let edit = EditWork {
            call: job.call,
            change,
            arguments: job.arguments,
        };
        change_files(job.context, escalation, &cancelled, edit, look).await
    }

    async fn find(job: Job<Arguments>) -> CallFact {
        let Some(change) = job.started.change else {
            return CallFact::Unknown;
        };
        let Ok(escalation) = job.context.escalation(Self::asked(&job.arguments)) else {
            return CallFact::Unknown;
        };
        let look = replaced(&job.arguments, job.call, change);
        fact(job.context, escalation, look).await
    }
}

fn replaced(arguments: &Arguments, call: CallId, change: FileChange) -> Replaced {
    Replaced {
        path: arguments.file_path.clone(),
        call,
        change,
        said: Summary::Edited,
    }
}

/// Checks that the edit fits.
#[derive(Serialize, Deserialize)]
pub(super) struct Prepare {
    arguments: Arguments,
    seen: SeenFiles,
}

impl FileWork for Prepare {
    const NAME: &'static str = "prepare_edit";
    type Report = Start;

    fn carry_out(&self, context: Within<'_>, _stop: &Stop) -> Result<Start, Failure> {
        let target = Target::of(context, &self.arguments.file_path)?;
        let content = content(&target)?;
        let now = hash::of(content.as_bytes());
        let wanted = Wanted {
            context: context.context,
            target: &target,
            now: &now,
            seen: &self.seen,
            escalation: context.escalation,
        };
        wanted.check()?;
        let edited = self.arguments.edit().apply(&target.name, &content)?;
        let after = hash::of(edited.text.as_bytes());
        let before = match after == now {
            true => None,
            false => file_history::of_text(context, &target, content, &now)?,
        };
        Ok(Start::change(context, &target, Some(now), after, before))
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct EditWork {
    call: CallId,
    change: FileChange,
    arguments: Arguments,
}

impl FileWork for EditWork {
    const NAME: &'static str = "edit";
    type Report = Ended;

    fn carry_out(&self, context: Within<'_>, _stop: &Stop) -> Result<Ended, Failure> {
        let change = &self.change;
        let target = Target::of(context, &self.arguments.file_path)?;
        let content = content(&target)?;
        if Some(hash::of(content.as_bytes())) != change.before {
            return Err(target.changed());
        }
        let edited = self.arguments.edit().apply(&target.name, &content)?;
        target.replace(&self.call, edited.text.as_bytes())?;
        let text = match edited.places {
            1 => format!("Edited {}, line {}.", target.name, edited.line),
            places => format!(
                "Edited {}: {} replacements.",
                target.name,
                number(places as u64)
            ),
        };
        let left = Left::wrote(context, &target.path, &change.after, Some(&edited.text));
        Ok(Ended::new(target.written(change, text), vec![left]))
    }
}

impl Arguments {
    fn edit(&self) -> Edit<'_> {
        Edit {
            old: &self.old_string,
            new: &self.new_string,
            all: self.replace_all.unwrap_or_default(),
        }
    }
}

/// The text after the edit with these arguments; `None` if it cannot be applied.
pub(super) fn edited(arguments: Value, text: &str) -> Option<String> {
    let arguments: Arguments = serde_json::from_value(arguments).ok()?;
    let edited = arguments.edit().apply("", text).ok()?;
    Some(edited.text)
}

/// The text of a file that is to be edited.
pub(super) fn content(target: &Target) -> Result<String, Failure> {
    target.check()?;
    let cannot = |error: io::Error| target.cannot("read", &error);
    let file = hash::open(&target.path).map_err(cannot)?;
    let file = file.ok_or_else(|| cannot(Errno::NOENT.into()))?;
    let size = file.metadata().map_err(cannot)?.len();
    let too_large = || {
        Failure::new(format!(
            "{} has {} bytes, and only files of at most {} bytes can be edited; use shell, for example with sed.",
            target.name,
            number(size),
            number(MAX_BYTES)
        ))
    };
    if size > MAX_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(cannot)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|_| {
        Failure::new(format!(
            "{} is not UTF-8 text, so it cannot be edited; use shell.",
            target.name
        ))
    })
}

#[cfg(test)]
mod tests;
