//! `edit_file`: a text in a file is replaced by another.

mod find_text;

use super::blocking::{self, Cancelled};
use super::context::ToolContext;
use super::escalate::{ESCALATE, escalation};
use super::failure::{Failure, done};
use super::output::number;
use super::replace::{self, Given, Target};
use super::tool::{Job, Start, Tool, Traits};
use super::write_file::refuse_mark;
use super::{hash, paths};
use agentd_core::event::FileChange;
use agentd_core::id::CallId;
use agentd_core::permission::Subject;
use agentd_core::recover::CallFact;
use agentd_core::secrets::MARK;
use agentd_core::turn::Finished;
use async_trait::async_trait;
use find_text::Edit;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::sync::Arc;

/// A larger file is not edited: all of it must be held to be written anew.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

pub(super) struct EditFile;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    file_path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: Option<bool>,
    #[serde(default)]
    escalate: Option<String>,
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
        "Replaces a text in a file by another. `old_string` must be in the file exactly as given, white \
         space included, and only once, unless `replace_all` is true."
            .into()
    }

    fn parameters() -> Value {
        json!({
            "type": "object",
            "properties": {
                "file_path": {
                    "type": "string",
                    "description": "The file, from the working directory or from the root."
                },
                "old_string": {"type": "string", "description": "The text that is there now."},
                "new_string": {"type": "string", "description": "The text to put in its place."},
                "replace_all": {
                    "type": "boolean",
                    "description": "Replace it wherever it is. Default: false."
                },
                "escalate": {"type": "string", "description": ESCALATE}
            },
            "required": ["file_path", "old_string", "new_string"],
            "additionalProperties": false
        })
    }

    fn subjects(context: &ToolContext, arguments: &Arguments) -> Result<Vec<Subject>, Failure> {
        paths::named(&context.cwd, &arguments.file_path)
    }

    fn escalation(arguments: &Arguments) -> Option<&str> {
        arguments.escalate.as_deref()
    }

    async fn prepare(
        context: &Arc<ToolContext>,
        _call: &CallId,
        arguments: Arguments,
    ) -> Result<Start, Failure> {
        refuse_mark("new_string", &arguments.new_string)?;
        if arguments.old_string.contains(MARK) {
            return Err(Failure::new(format!(
                "`old_string` holds `{MARK}`, which stands for a secret that you were not shown: the file \
                 has something else there. Take a text beside it."
            )));
        }
        let context = Arc::clone(context);
        let change = blocking::whole(move || {
            let leave = escalation(arguments.escalate.as_deref());
            context.within_of(leave, || {
                let target = Target::of(&context, &arguments.file_path)?;
                let content = content(&target)?;
                let edited = arguments.edit().apply(&target.name, &content)?;
                Ok(FileChange {
                    before: Some(hash::of(content.as_bytes())),
                    after: hash::of(edited.text.as_bytes()),
                })
            })
        });
        Ok(Start {
            change: Some(change.await??),
            ..Start::default()
        })
    }

    async fn run(job: Job<Arguments>, cancelled: Cancelled) -> Finished {
        if cancelled.now() {
            return blocking::interrupted();
        }
        // Once begun it is done in a moment, and half of it cannot be left.
        let leave = escalation(job.arguments.escalate.as_deref());
        match blocking::whole(move || job.context.within_of(leave, || edit(&job))).await {
            Ok(result) => done(result),
            Err(failure) => failure.into(),
        }
    }

    async fn find(job: Job<Arguments>) -> CallFact {
        let said = |name: &str, _: &FileChange| format!("Edited {name}.");
        let file = Given {
            leave: escalation(job.arguments.escalate.as_deref()),
            path: job.arguments.file_path,
        };
        replace::fact(job.context, file, job.call, job.started.change, said).await
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

fn edit(job: &Job<Arguments>) -> Result<String, Failure> {
    let Some(change) = &job.started.change else {
        return Err(Failure::new(
            "Its start was not recorded; nothing was written.",
        ));
    };
    let target = Target::of(&job.context, &job.arguments.file_path)?;
    let content = content(&target)?;
    if Some(hash::of(content.as_bytes())) != change.before {
        return Err(target.changed());
    }
    let edited = job.arguments.edit().apply(&target.name, &content)?;
    target.replace(&job.call, edited.text.as_bytes())?;
    Ok(match edited.places {
        1 => format!("Edited {}, line {}.", target.name, edited.line),
        places => format!("Edited {}: {} places.", target.name, number(places as u64)),
    })
}

fn content(target: &Target) -> Result<String, Failure> {
    target.check()?;
    let cannot = |error: io::Error| target.cannot("read", &error);
    let size = fs::metadata(&target.path).map_err(cannot)?.len();
    let too_large = || {
        Failure::new(format!(
            "{} has {} bytes; edit_file changes files of up to {}.",
            target.name,
            number(size),
            number(MAX_BYTES)
        ))
    };
    if size > MAX_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let file = File::open(&target.path).map_err(cannot)?;
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(cannot)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|_| {
        Failure::new(format!(
            "{} is not a text in UTF-8; edit_file leaves it alone.",
            target.name
        ))
    })
}

#[cfg(test)]
mod tests;
