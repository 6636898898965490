//! `apply_patch`: changes several files by one patch, for models that were trained on this form. All of it is checked
//! against the files before anything is written.

mod plan;

use super::blocking::{self, Cancelled};
use super::context::ToolContext;
use super::escalate::{Asked, ESCALATE, Escalation, NEEDS};
use super::failure::{Failure, said};
use super::grant::Paths;
use super::replace::make_parents;
use super::tool::{Job, Start, Tool};
use super::traits::Traits;
use super::write_file::refuse_mark;
use super::{contents, hash, paths};
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
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) struct ApplyPatch;

#[derive(Deserialize)]
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
        let mut subjects = Vec::new();
        for (path, change) in patch.changes() {
            let of_path = paths::named(&context.cwd, path)?.into_iter();
            subjects.extend(of_path.map(|subject| match subject {
                Subject::Names(names) => Subject::Patched { names, change },
                other => other,
            }));
        }
        Ok(subjects)
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
        // Only an approved call may look at files outside of the sandbox.
        if arguments.escalate.is_some() {
            return None;
        }
        let patch = arguments.patch().ok()?;
        let mut files = Vec::new();
        for (path, _) in patch.changes() {
            files.extend(paths::named(&context.cwd, path).ok()?);
        }
        Some(files)
    }

    async fn prepare(
        context: &Arc<ToolContext>,
        arguments: Arguments,
        seen: &SeenFiles,
    ) -> Result<Start, Failure> {
        refuse_mark("input", &arguments.input)?;
        let patch = arguments.patch()?;
        let (context, seen) = (Arc::clone(context), seen.clone());
        let start = blocking::whole(move || {
            let escalation = context.escalation(Self::asked(&arguments))?;
            context.within_of(&escalation, || {
                let known = Known::Checked { seen: &seen };
                let steps = plan::steps(context.under(&escalation), &patch, known)?;
                plan::start(&context, &steps)
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
        let Ok(escalation) = job.context.escalation(Self::asked(&job.arguments)) else {
            return CallFact::Unknown;
        };
        let found = blocking::whole(move || {
            let context = &job.context;
            context.within_of(&escalation, || found(&job, &escalation))
        });
        match found.await {
            Ok(Ok(fact)) => fact,
            _ => CallFact::Unknown,
        }
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

fn write(job: &Job<Arguments>, escalation: &Escalation) -> Result<Finished, Failure> {
    let patch = job.arguments.patch()?;
    let steps = plan::steps(job.context.under(escalation), &patch, Known::CheckedBefore)?;
    let recorded = &job.started.patched;
    if recorded.is_empty() || recorded.len() != steps.len() {
        return Err(Failure::new(
            "The start of this call was not recorded; nothing was written.",
        ));
    }
    let mut pairs = steps.iter().zip(recorded);
    let is_changed = |step: &Step, recorded: &PatchedFile| {
        let now = step.record();
        (&now.before, &now.after) != (&recorded.before, &recorded.after)
    };
    if let Some((changed, _)) = pairs.find(|(step, recorded)| is_changed(step, recorded)) {
        return Err(changed.target.changed());
    }
    let mut done: Vec<&Step> = Vec::new();
    for step in &steps {
        if let Err(failure) = carry_out(step, &job.call, &job.context) {
            return Ok(stopped(&done, &failure));
        }
        done.push(step);
    }
    Ok(finished(&steps))
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

fn carry_out(step: &Step, call: &CallId, context: &ToolContext) -> Result<(), Failure> {
    let target = &step.target;
    check_again(step)?;
    let Some(text) = &step.new else {
        context.scans.removed(&target.path);
        return target.remove();
    };
    let after = hash::of(text.as_bytes());
    if step.before.as_ref() != Some(&after) {
        make_parents(&target.path)
            .map_err(|error| target.cannot("create the directory of", &error))?;
        target.replace_with_mode(call, text.as_bytes(), step.mode)?;
    }
    context.contents.keep(&after, text.as_bytes());
    context.scans.wrote(&target.path, &after);
    Ok(())
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
fn found(job: &Job<Arguments>, escalation: &Escalation) -> Result<CallFact, Failure> {
    let patch = job.arguments.patch()?;
    let targets = plan::targets(job.context.under(escalation), &patch)?;
    let recorded = &job.started.patched;
    if recorded.is_empty() || recorded.len() != targets.len() {
        return Ok(CallFact::Unknown);
    }
    let mut now = Vec::new();
    for target in &targets {
        target.remove_unready(&job.call);
        now.push(target.hash()?);
    }
    let is_all = |side: fn(&PatchedFile) -> &Option<String>| {
        let mut pairs = now.iter().zip(recorded);
        pairs.all(|(now, recorded)| now == side(recorded))
    };
    if is_all(|file| &file.after) {
        for (target, file) in targets.iter().zip(recorded) {
            match &file.after {
                Some(after) => job.context.scans.wrote(&target.path, after),
                None => job.context.scans.removed(&target.path),
            }
        }
        let written = targets.iter().zip(recorded);
        let seen = written.filter_map(|(target, file)| {
            let hash = file.after.clone()?;
            Some(contents::seen(&target.path, hash))
        });
        return Ok(CallFact::Ended(Finished {
            seen: seen.collect(),
            ..said(CallOutcome::Ok, "The patch was applied.")
        }));
    }
    Ok(match is_all(|file| &file.before) {
        true => CallFact::NotStarted,
        false => CallFact::Unknown,
    })
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
