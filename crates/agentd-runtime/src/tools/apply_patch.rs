//! `apply_patch`: changes several files by one patch, for models that were trained on this form. All of it is checked
//! against the files before anything is written.

mod plan;

use super::blocking::{Cancelled, Stop};
use super::context::{ToolContext, Within};
use super::escalate::{Asked, ESCALATE, NEEDS};
use super::failure::{Failure, said};
use super::file_work::{Ended, Fact, FileWork, Left};
use super::grant::Paths;
use super::named_files;
use super::replace::make_parents;
use super::replaced::fact;
use super::tool::{Job, Start, Tool, change_files, prepare_in};
use super::traits::Traits;
use super::write_file::refuse_mark;
use super::{contents, hash};
use agentd_core::event::PatchedFile;
use agentd_core::id::CallId;
use agentd_core::message::CallOutcome;
use agentd_core::patch::{self, Patch};
use agentd_core::permission::Subject;
use agentd_core::recover::CallFact;
use agentd_core::turn::Finished;
use agentd_core::window::SeenFiles;
use async_trait::async_trait;
use plan::{Known, Step};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) struct ApplyPatch;

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    input: String,
    #[serde(default)]
    escalate: Option<String>,
    #[serde(default)]
    needs: Option<Vec<String>>,
}

#[async_trait]
impl Tool for ApplyPatch {
    const NAME: &'static str = patch::TOOL;
    const TRAITS: Traits = Traits {
        parallel: false,
        idempotent: false,
        approval: true,
    };
    type Arguments = Arguments;

    fn description() -> String {
        "Changes, creates, deletes and moves files by a patch. Use it for every change of a text file. A file that \
         you have read must not have changed since; your own patches count as read. A file that you delete, or replace \
         with `*** Add File:`, must be read with read_file first. The whole patch is checked before anything is written: if one hunk does not fit, no file is changed. \
         \n\nThe patch is a text of this form:\n\n\
         *** Begin Patch\n\
         *** Add File: path/of/new_file.txt\n\
         +each line of the new file, after a `+`\n\
         *** Update File: path/of/file.rs\n\
         *** Move to: new/path.rs\n\
         @@ fn name() {\n \
          a line that stays\n\
         -a line that goes\n\
         +a line that comes\n\
         *** Delete File: path/of/old_file.txt\n\
         *** End Patch\n\n\
         `*** Move to:` is optional. Each hunk begins with `@@`, followed by a line of the file above the place if the \
         lines of the hunk alone do not identify it. Give about three lines before and after each change, exactly as \
         they are in the file, each after a space. Hunks of a file are in the order of the file, and each file is \
         named once. `*** End of File` after a hunk means that it is at the end of the file. Paths are absolute, or \
         relative to the working directory."
            .into()
    }

    fn parameters() -> Value {
        json!({
            "type": "object",
            "properties": {
                "input": {
                    "type": "string",
                    "description": "The whole patch, from `*** Begin Patch` to `*** End Patch`."
                },
                "escalate": {"type": "string", "description": ESCALATE},
                "needs": {"type": "array", "items": {"type": "string"}, "description": NEEDS}
            },
            "required": ["input"],
            "additionalProperties": false
        })
    }

    fn subjects(context: &ToolContext, arguments: &Arguments) -> Result<Vec<Subject>, Failure> {
        let patch = arguments.patch()?;
        let changes: Vec<_> = patch.changes().collect();
        let given: Vec<&str> = changes.iter().map(|(path, _)| *path).collect();
        let escalate = arguments.escalate.as_deref();
        let files = named_files::all(context, &given, escalate)?.into_iter();
        let subjects = files.zip(&changes).flat_map(|(subjects, (_, change))| {
            let subjects = subjects.into_iter();
            subjects.map(|subject| match subject {
                Subject::Names(names) => Subject::Patched {
                    names,
                    change: *change,
                },
                other => other,
            })
        });
        Ok(subjects.collect())
    }

    const PATHS: Paths = Paths::MayBeNew;

    fn changes(arguments: &Arguments) -> Vec<String> {
        let patch = arguments.patch();
        let patch = patch.unwrap_or(Patch { files: Vec::new() });
        patch.changes().map(|(path, _)| path.to_owned()).collect()
    }

    fn asked(arguments: &Arguments) -> Asked<'_> {
        Asked::new(&arguments.escalate, &arguments.needs)
    }

    fn checked_first(context: &ToolContext, arguments: &Arguments) -> Option<Vec<Subject>> {
        let patch = arguments.patch().ok()?;
        let changes: Vec<_> = patch.changes().collect();
        let given: Vec<&str> = changes.iter().map(|(path, _)| *path).collect();
        named_files::checked_first(context, &given, arguments.escalate.as_deref())
    }

    async fn prepare(
        context: &Arc<ToolContext>,
        arguments: Arguments,
        seen: &SeenFiles,
    ) -> Result<Start, Failure> {
        refuse_mark("input", &arguments.input)?;
        arguments.patch()?;
        let escalation = context.escalation(Self::asked(&arguments))?;
        let work = Prepare {
            seen: seen.clone(),
            arguments,
        };
        prepare_in(context, escalation, work).await
    }

    async fn run(job: Job<Arguments>, cancelled: Cancelled) -> Finished {
        let escalation = match job.context.escalation(Self::asked(&job.arguments)) {
            Ok(escalation) => escalation,
            Err(failure) => return failure.into(),
        };
        let (context, apply) = Apply::of(job);
        let look = Look(apply.clone());
        change_files(context, escalation, &cancelled, apply, look).await
    }

    async fn find(job: Job<Arguments>) -> CallFact {
        let Ok(escalation) = job.context.escalation(Self::asked(&job.arguments)) else {
            return CallFact::Unknown;
        };
        let (context, apply) = Apply::of(job);
        fact(context, escalation, Look(apply)).await
    }
}

/// Checks that the whole patch fits.
#[derive(Serialize, Deserialize)]
pub(super) struct Prepare {
    arguments: Arguments,
    seen: SeenFiles,
}

impl FileWork for Prepare {
    const NAME: &'static str = "prepare_patch";
    type Report = Start;

    fn carry_out(&self, context: Within<'_>, _stop: &Stop) -> Result<Start, Failure> {
        let known = Known::Checked { seen: &self.seen };
        let steps = plan::steps(context, &self.arguments.patch()?, known)?;
        plan::start(context, &steps)
    }
}

/// A patch whose start was recorded.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Apply {
    call: CallId,
    recorded: Vec<PatchedFile>,
    arguments: Arguments,
}

impl Apply {
    fn of(job: Job<Arguments>) -> (Arc<ToolContext>, Self) {
        let apply = Self {
            call: job.call,
            recorded: job.started.patched,
            arguments: job.arguments,
        };
        (job.context, apply)
    }
}

impl Arguments {
    fn patch(&self) -> Result<Patch, Failure> {
        Patch::parse(&self.input).map_err(|error| {
            Failure::new(format!(
                "`input` is not a valid patch: {error}. Nothing was changed; correct the patch and send all of it again."
            ))
        })
    }
}

impl FileWork for Apply {
    const NAME: &'static str = "apply_patch";
    type Report = Ended;

    fn carry_out(&self, context: Within<'_>, _stop: &Stop) -> Result<Ended, Failure> {
        let patch = self.arguments.patch()?;
        let steps = plan::steps(context, &patch, Known::CheckedBefore)?;
        let recorded = &self.recorded;
        if recorded.is_empty() || recorded.len() != steps.len() {
            return Err(Failure::new(
                "The start of this call was not recorded; nothing was written.",
            ));
        }
        let mut pairs = steps.iter().zip(recorded);
        let is_changed = |step: &Step, recorded: &PatchedFile| {
            let now = step.record(context);
            (&now.before, &now.after) != (&recorded.before, &recorded.after)
        };
        if let Some((changed, _)) = pairs.find(|(step, recorded)| is_changed(step, recorded)) {
            return Err(changed.target.changed());
        }
        let mut done: Vec<&Step> = Vec::new();
        let mut left = Vec::new();
        for step in &steps {
            match carry_out(step, &self.call, context) {
                Ok(it) => left.push(it),
                Err(failure) => return Ok(Ended::new(stopped(&done, &failure), left)),
            }
            done.push(step);
        }
        Ok(Ended::new(finished(&steps), left))
    }
}

/// Other files were written since the whole patch was checked, which may have taken a while. What is replaced must be what was
/// kept.
fn check_again(step: &Step) -> Result<(), Failure> {
    match step.target.hash()? == step.before {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "{} was changed by another process in the meantime and was not written. Read it again.",
            step.target.name
        ))),
    }
}

fn carry_out(step: &Step, call: &CallId, context: Within<'_>) -> Result<Left, Failure> {
    let target = &step.target;
    check_again(step)?;
    let Some(text) = &step.new else {
        target.remove()?;
        return Ok(Left::removed(context, &target.path));
    };
    let after = hash::of(text.as_bytes());
    if step.before.as_ref() != Some(&after) {
        make_parents(&target.path)
            .map_err(|error| target.cannot("create the directory of", &error))?;
        target.replace_with_mode(call, text.as_bytes(), step.mode)?;
    }
    Ok(Left::wrote(context, &target.path, &after, Some(text)))
}

/// The model knows what it has written.
fn seen(steps: &[&Step]) -> Vec<agentd_core::event::FileSeen> {
    let written = steps.iter().filter_map(|step| {
        let text = step.new.as_ref()?;
        let hash = hash::of(text.as_bytes());
        Some(contents::seen(&step.target.path, hash))
    });
    written.collect()
}

fn finished(steps: &[Step]) -> Finished {
    let lines: Vec<&str> = steps.iter().filter_map(|it| it.said.as_deref()).collect();
    let steps: Vec<&Step> = steps.iter().collect();
    Finished {
        seen: seen(&steps),
        ..said(CallOutcome::Ok, lines.join("\n"))
    }
}

/// A file could not be written, for example because the disk is full. Earlier ones have been.
fn stopped(done: &[&Step], failure: &Failure) -> Finished {
    let names: Vec<&str> = done.iter().map(|step| step.target.name.as_str()).collect();
    let text = match names.is_empty() {
        true => format!("{} No file was changed.", failure.text()),
        false => format!(
            "{} These files of the patch have been changed already: {}. The others have not: send a patch for \
             them.",
            failure.text(),
            names.join(", ")
        ),
    };
    Finished {
        seen: seen(done),
        ..said(CallOutcome::Error, text)
    }
}

/// What an earlier process did of the patch: all of it, nothing, or an unknown part.
#[derive(Serialize, Deserialize)]
pub(super) struct Look(Apply);

impl FileWork for Look {
    const NAME: &'static str = "patched";
    type Report = Fact;

    fn carry_out(&self, context: Within<'_>, _stop: &Stop) -> Result<Fact, Failure> {
        let Self(applied) = self;
        let patch = applied.arguments.patch()?;
        let targets = plan::targets(context, &patch)?;
        let recorded = &applied.recorded;
        if recorded.is_empty() || recorded.len() != targets.len() {
            return Ok(Fact::Unknown);
        }
        let mut now = Vec::new();
        for target in &targets {
            target.remove_unready(&applied.call);
            now.push(target.hash()?);
        }
        let is_all = |side: fn(&PatchedFile) -> &Option<String>| {
            let mut pairs = now.iter().zip(recorded);
            pairs.all(|(now, recorded)| now == side(recorded))
        };
        if is_all(|file| &file.after) {
            let files = || targets.iter().zip(recorded);
            let left = files().map(|(target, file)| match &file.after {
                Some(after) => Left::wrote(context, &target.path, after, None),
                None => Left::removed(context, &target.path),
            });
            let seen = files().filter_map(|(target, file)| {
                let hash = file.after.clone()?;
                Some(contents::seen(&target.path, hash))
            });
            let finished = Finished {
                seen: seen.collect(),
                ..said(CallOutcome::Ok, "The patch was applied.")
            };
            return Ok(Fact::Ended(Ended::new(finished, left.collect())));
        }
        Ok(match is_all(|file| &file.before) {
            true => Fact::NotStarted,
            false => Fact::Unknown,
        })
    }
}

/// The texts of the files after a patch, by the paths that it names, as far as the texts before it are known.
pub(super) fn patched(
    input: &str,
    text_of: impl Fn(&str) -> Option<String>,
) -> Vec<(String, String)> {
    let Ok(patch) = Patch::parse(input) else {
        return Vec::new();
    };
    let texts = patch.files.iter().filter_map(|file| match file {
        patch::FilePatch::Add { path, text } => Some((path.clone(), text.clone())),
        patch::FilePatch::Delete { .. } => None,
        patch::FilePatch::Update {
            path,
            move_to,
            hunks,
        } => {
            let text = patch::apply(hunks, &text_of(path)?).ok()?;
            Some((move_to.as_ref().unwrap_or(path).clone(), text))
        }
    });
    texts.collect()
}

#[cfg(test)]
mod tests;
