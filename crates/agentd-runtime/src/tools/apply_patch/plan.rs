//! What a patch does to each file, checked against the files as they are.

use super::super::context::Within;
use super::super::edit_file::{closest, content};
use super::super::failure::Failure;
use super::super::file_history::{self, Before, Budget};
use super::super::known_content::Wanted;
use super::super::replace::Target;
use super::super::tool::Start;
use super::super::{contents, hash, paths};
use agentd_core::event::PatchedFile;
use agentd_core::patch::{self, FilePatch, Hunk, HunkLine, Patch, Unmatched, Why};
use agentd_core::window::SeenFiles;
use std::fs;

/// Whether the model knows the files that it changes.
#[derive(Clone, Copy)]
pub(super) enum Known<'a> {
    Checked {
        seen: &'a SeenFiles,
    },
    /// It was checked before the call started, and the files' hashes were recorded.
    CheckedBefore,
}

/// The change of one path.
pub(super) struct Step {
    pub target: Target,
    /// The hash of the content before; none if there is no file.
    pub before: Option<String>,
    /// The new content; none if the file is removed.
    pub new: Option<String>,
    /// The line of the result; none for the second path of a file that is moved.
    pub said: Option<String>,
    /// The permission bits of a file that is moved here.
    pub mode: Option<u32>,
}

impl Step {
    pub fn record(&self, context: Within<'_>) -> PatchedFile {
        let after = self.new.as_ref().map(|text| hash::of(text.as_bytes()));
        PatchedFile {
            file: Some(contents::id(&self.target.path)),
            before: self.before.clone(),
            after,
            kept_bytes: 0,
            is_private: !context.shares(&self.target.path),
        }
    }
}

/// The steps as the start records them, and what the files are that they change.
pub(super) fn start(context: Within<'_>, steps: &[Step]) -> Result<Start, Failure> {
    let mut start = Start::default();
    let mut budget = Budget::default();
    for step in steps {
        let mut file = step.record(context);
        if file.before != file.after {
            let found = file_history::find(context, &step.target)?;
            if found.hash != file.before {
                return Err(step.target.changed());
            }
            let before = found.before.map(|before| budget.fit(before));
            file.kept_bytes = before.as_ref().map_or(0, Before::counted_bytes);
            start.before.extend(before);
        }
        start.patched.push(file);
    }
    Ok(start)
}

/// The paths in the order of [`steps`]: first what is written, then what is removed, so that an interrupted move leaves
/// both files and never none.
pub(super) fn targets(context: Within<'_>, patch: &Patch) -> Result<Vec<Target>, Failure> {
    let written = patch.files.iter().filter_map(|file| match file {
        FilePatch::Add { path, .. } => Some(path),
        FilePatch::Delete { .. } => None,
        FilePatch::Update { path, move_to, .. } => Some(move_to.as_ref().unwrap_or(path)),
    });
    let removed = patch.files.iter().filter_map(|file| match file {
        FilePatch::Delete { path } => Some(path),
        FilePatch::Update {
            path,
            move_to: Some(_),
            ..
        } => Some(path),
        _ => None,
    });
    let all = written.chain(removed);
    all.map(|path| Target::of(context, path)).collect()
}

/// What the patch does, or the first thing that does not fit.
pub(super) fn steps(
    context: Within<'_>,
    patch: &Patch,
    known: Known<'_>,
) -> Result<Vec<Step>, Failure> {
    let (mut written, mut removed) = (Vec::new(), Vec::new());
    for file in &patch.files {
        match file {
            FilePatch::Add { path, text } => written.push(add(context, path, text, known)?),
            FilePatch::Delete { path } => removed.push(delete(context, path, known)?),
            FilePatch::Update {
                path,
                move_to,
                hunks,
            } => {
                let update = update(context, path, hunks, known)?;
                match move_to {
                    None => written.push(update),
                    Some(to) => {
                        let (new, old) = moved(context, path, to, update)?;
                        written.push(new);
                        removed.push(old);
                    }
                }
            }
        }
    }
    written.extend(removed);
    for (at, step) in written.iter().enumerate() {
        let mut before = written.iter().take(at);
        if before.any(|other| other.target.path == step.target.path) {
            return Err(Failure::new(format!(
                "Two paths of the patch lead to the same file, {}; nothing was changed. Name each file once.",
                step.target.name
            )));
        }
    }
    Ok(written)
}

fn add(context: Within<'_>, path: &str, text: &str, known: Known<'_>) -> Result<Step, Failure> {
    let target = Target::of(context, path)?;
    target.check()?;
    let before = target.hash()?;
    let after = hash::of(text.as_bytes());
    if let Some(now) = before.as_deref().filter(|now| *now != after) {
        check_known(context, &target, now, known)?;
    }
    let lines = match text.lines().count() {
        1 => "1 line".to_owned(),
        lines => format!("{lines} lines"),
    };
    let said = match &before {
        None => format!("Created {} ({lines}).", target.name),
        Some(_) => format!("Replaced {} ({lines}).", target.name),
    };
    Ok(Step {
        target,
        before,
        new: Some(text.to_owned()),
        said: Some(said),
        mode: None,
    })
}

fn delete(context: Within<'_>, path: &str, known: Known<'_>) -> Result<Step, Failure> {
    let target = removable(context, path)?;
    let Some(now) = target.hash()? else {
        return Err(missing(&target));
    };
    check_known(context, &target, &now, known)?;
    let said = Some(format!("Deleted {}.", target.name));
    Ok(Step {
        target,
        before: Some(now),
        new: None,
        said,
        mode: None,
    })
}

fn update(
    context: Within<'_>,
    path: &str,
    hunks: &[Hunk],
    known: Known<'_>,
) -> Result<Step, Failure> {
    let target = Target::of(context, path)?;
    target.check()?;
    if target.hash()?.is_none() {
        return Err(missing(&target));
    }
    let text = content(&target)?;
    let now = hash::of(text.as_bytes());
    // The lines of the hunks show that the model knows the place, also if it has not read the file with a tool.
    check_unchanged(context, &target, &now, known)?;
    let new = patch::apply(hunks, &text)
        .map_err(|unmatched| does_not_fit(&target.name, &text, &unmatched))?;
    let count = |is: fn(&HunkLine) -> bool| {
        let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
        lines.filter(|line| is(line)).count()
    };
    let added = count(|line| matches!(line, HunkLine::Add(_)));
    let gone = count(|line| matches!(line, HunkLine::Remove(_)));
    let said = Some(format!("Updated {} (+{added} -{gone}).", target.name));
    Ok(Step {
        target,
        before: Some(now),
        new: Some(new),
        said,
        mode: None,
    })
}

/// The new file, and the old one, which is removed.
fn moved(context: Within<'_>, from: &str, to: &str, update: Step) -> Result<(Step, Step), Failure> {
    let target = Target::of(context, to)?;
    target.check()?;
    if target.hash()?.is_some() {
        return Err(Failure::new(format!(
            "{} exists already, so {} cannot be moved there; nothing was changed. Choose another path, or delete it \
             first.",
            target.name, update.target.name
        )));
    }
    let source = removable(context, from)?;
    let new = Step {
        mode: source.mode()?,
        said: Some(format!("Moved {} to {}.", source.name, target.name)),
        target,
        before: None,
        new: update.new,
    };
    let old = Step {
        target: source,
        before: update.before,
        new: None,
        said: None,
        mode: None,
    };
    Ok((new, old))
}

/// A file that can be removed. The path of a link leads to another file, which must not be removed in its place.
fn removable(context: Within<'_>, path: &str) -> Result<Target, Failure> {
    let given = paths::locate(&context.cwd, path)?;
    let target = Target::of(context, path)?;
    let is_link = fs::symlink_metadata(given).is_ok_and(|metadata| metadata.is_symlink());
    match is_link {
        true => Err(Failure::new(format!(
            "{} is a symbolic link; nothing was changed. Use shell to remove or move it.",
            target.name
        ))),
        false => {
            target.check()?;
            Ok(target)
        }
    }
}

fn check_known(
    context: Within<'_>,
    target: &Target,
    now: &str,
    known: Known<'_>,
) -> Result<(), Failure> {
    let wanted = wanted(context, target, now, known);
    wanted.map_or(Ok(()), |wanted| wanted.check())
}

fn check_unchanged(
    context: Within<'_>,
    target: &Target,
    now: &str,
    known: Known<'_>,
) -> Result<(), Failure> {
    let wanted = wanted(context, target, now, known);
    wanted.map_or(Ok(()), |wanted| wanted.check_unchanged())
}

/// The change that is to be checked, unless that was done before.
const fn wanted<'a>(
    context: Within<'a>,
    target: &'a Target,
    now: &'a str,
    known: Known<'a>,
) -> Option<Wanted<'a>> {
    match known {
        Known::CheckedBefore => None,
        Known::Checked { seen } => Some(Wanted {
            context: context.context,
            target,
            now,
            seen,
            escalation: context.escalation,
        }),
    }
}

fn missing(target: &Target) -> Failure {
    Failure::new(format!(
        "{} does not exist; nothing was changed. Use list_files to see what there is, and `*** Add File:` to create a \
         file.",
        target.name
    ))
}

fn does_not_fit(name: &str, text: &str, unmatched: &Unmatched) -> Failure {
    let Unmatched { hunk, wanted, why } = unmatched;
    let reason = match why {
        Why::Header => format!("the line `{wanted}` after `@@` is not in the file"),
        Why::Lines => "its lines are not in the file".to_owned(),
        Why::Order => {
            "its lines are above those of the hunk before it; give hunks in the order of the file"
                .to_owned()
        }
        Why::TooMuchWork => "the search for its lines takes too long; use fewer and shorter hunks, with `@@` and a line \
                             that occurs once above each"
            .to_owned(),
    };
    let place = match why {
        Why::Order | Why::TooMuchWork => None,
        Why::Header | Why::Lines => closest(text, wanted, "the patch"),
    };
    let place = place.map_or_else(
        || " Read the file again, and correct the hunk.".to_owned(),
        |place| format!(" {place}"),
    );
    Failure::new(format!(
        "Hunk {hunk} of {name} does not fit: {reason}. No file was changed.{place}"
    ))
}
