//! What an agent changed in files, and what a restore did, as lines.

use super::{count, named, size, time};
use crate::terminal::{ADDED, BAD, HEADING, QUIET, REMOVED, is_raw, visible_prose};
use agentd_client::api::{
    ChangeBy, ChangedFile, ChangedFiles, DiffChange, FileAction, FileDiff, FileOutcome, FilesDiff,
    FilesOutcome, NotRestored, RestoredFile, RestoredFiles,
};
use agentd_core::plain::{is_visible, quoted};
use agentd_core::time::Timestamp;
use std::borrow::Cow;
use std::path::Path;

/// The longest bar of a summary, in characters.
const BAR: u64 = 40;

/// A reason as it is shown: whole, and in one line.
fn in_one_line(why: &str) -> String {
    let shown = why.chars().map(|c| match c {
        '\n' | '\t' => c.escape_default().to_string(),
        c if is_visible(c) => c.to_string(),
        c => c.escape_default().to_string(),
    });
    shown.collect()
}

/// Lines of a difference, in the colours of the live view.
pub fn diff(diff: &FilesDiff) -> Vec<String> {
    let mut lines = Vec::new();
    for file in &diff.files {
        lines.extend(of_file(file));
    }
    lines.extend(diff.unknown.iter().map(unknown));
    for child in &diff.subagents {
        lines.push(format!(
            "{HEADING}subagent {}{HEADING:#}",
            named(&child.agent)
        ));
        lines.extend(self::diff(child));
    }
    lines
}

fn of_file(file: &FileDiff) -> Vec<String> {
    let Some(text) = &file.diff else {
        let name = quoted(&file.name);
        let note = file.note.as_deref().unwrap_or("the content is the same");
        let how = how(file);
        return vec![format!(
            "{HEADING}{name}{HEADING:#}  {QUIET}{how}: {note}{QUIET:#}"
        )];
    };
    let mut is_head = true;
    let lines = text.split_terminator('\n').map(|line| {
        is_head &= !line.starts_with('@');
        painted(&line_ends(line), is_head)
    });
    let mut lines: Vec<String> = lines.collect();
    if let Some(note) = &file.note {
        let name = quoted(&file.name);
        lines.push(format!("{QUIET}{name}: {note}{QUIET:#}"));
    }
    lines
}

/// A line in which carriage returns are visible, as git shows them, and other characters that a terminal would act on.
/// `--raw` keeps all of them.
fn line_ends(line: &str) -> Cow<'_, str> {
    match line.contains('\r') && !is_raw() {
        true => Cow::Owned(visible_prose(&line.replace('\r', "^M")).into_owned()),
        false => visible_prose(line),
    }
}

fn painted(line: &str, is_head: bool) -> String {
    match line.chars().next() {
        _ if is_head => format!("{HEADING}{line}{HEADING:#}"),
        Some('+') => format!("{ADDED}{line}{ADDED:#}"),
        Some('-') => format!("{REMOVED}{line}{REMOVED:#}"),
        Some('@') => format!("{QUIET}{line}{QUIET:#}"),
        _ => line.to_owned(),
    }
}

const fn how(file: &FileDiff) -> &'static str {
    match (file.change, file.by) {
        (DiffChange::Created, ChangeBy::Command) => "created by a command",
        (DiffChange::Deleted, ChangeBy::Command) => "deleted by a command",
        (DiffChange::Edited, ChangeBy::Command) => "changed by a command",
        (DiffChange::Permissions, ChangeBy::Command) => "permissions changed by a command",
        (DiffChange::Permissions, _) => "permissions changed",
        (DiffChange::Created, _) => "created",
        (DiffChange::Deleted, _) => "deleted",
        (DiffChange::Unchanged, _) => "unchanged",
        (DiffChange::Edited, ChangeBy::Restore) => "restored",
        (DiffChange::Edited, ChangeBy::Tool) => "changed",
    }
}

/// A line for each file, and the sum.
pub fn stat(diff: &FilesDiff) -> Vec<String> {
    let names: Vec<Cow<'_, str>> = diff.files.iter().map(|file| quoted(&file.name)).collect();
    let widest = names.iter().map(|name| name.chars().count());
    let widest = widest.max().unwrap_or(0);
    let most = diff.files.iter().map(|file| file.added + file.removed);
    let most = most.max().unwrap_or(0).max(1);
    let mut lines: Vec<String> = diff
        .files
        .iter()
        .zip(names)
        .map(|(file, name)| {
            let name = format!("{name:widest$}");
            let scaled = |lines: u64| match most > BAR {
                true => (lines * BAR).div_ceil(most),
                false => lines,
            };
            let sign = |sign: &str, lines: u64| sign.repeat(scaled(lines) as usize);
            let (plus, minus) = (sign("+", file.added), sign("-", file.removed));
            let changed = file.added + file.removed;
            let how = how(file);
            match file.note.as_ref().filter(|_| changed == 0) {
                Some(note) => format!(" {name} | {QUIET}{how}: {note}{QUIET:#}"),
                None if file.change == DiffChange::Unchanged => {
                    format!(" {name} | {QUIET}{how}{QUIET:#}")
                }
                None => {
                    format!(" {name} | {changed} {ADDED}{plus}{ADDED:#}{REMOVED}{minus}{REMOVED:#}")
                }
            }
        })
        .collect();
    lines.push(summary(diff));
    lines.extend(diff.unknown.iter().map(unknown));
    for child in &diff.subagents {
        lines.push(format!(
            "{HEADING}subagent {}{HEADING:#}",
            named(&child.agent)
        ));
        lines.extend(stat(child));
    }
    lines
}

/// `3 files changed, +12 −4`
pub fn summary(diff: &FilesDiff) -> String {
    let changed = diff.files.iter();
    let changed = changed.filter(|file| file.change != DiffChange::Unchanged);
    let files = count(changed.count() as u64, "file");
    format!("{files} changed, +{} −{}", diff.added, diff.removed)
}

fn unknown(not_restored: &NotRestored) -> String {
    format!("{QUIET}{}{QUIET:#}", line(not_restored))
}

/// `src/a.rs: it was too large to be kept (turn 2)`
fn line(not_restored: &NotRestored) -> String {
    let why = not_restored.why.text();
    let turn = match (not_restored.turn_number, not_restored.turn) {
        (Some(number), _) => Some(number.to_string()),
        (None, turn) => turn.map(|turn| turn.to_string()),
    };
    match (&not_restored.path, turn) {
        (Some(path), Some(turn)) => format!("{}: {why} (turn {turn})", quoted(path)),
        (Some(path), None) => format!("{}: {why}", quoted(path)),
        (None, Some(turn)) => format!("turn {turn}: {why}"),
        (None, None) => why.to_owned(),
    }
}

/// What a restore did.
pub fn restored(done: &RestoredFiles) -> Vec<String> {
    let files = count(done.files.len() as u64, "file");
    let first = match done.outcome {
        FilesOutcome::Done | FilesOutcome::Planned => counted(done),
        FilesOutcome::Unchanged if done.not_restored.is_empty() => {
            "nothing to restore: every file already is what it was".to_owned()
        }
        FilesOutcome::Unchanged => "nothing to restore".to_owned(),
        FilesOutcome::Conflict => {
            format!("{BAD}nothing was written:{BAD:#} {files} in conflict")
        }
        FilesOutcome::Failed => format!("{BAD}not all files were restored{BAD:#}"),
    };
    let mut lines = vec![first];
    lines.extend(done.files.iter().map(|file| {
        let path = quoted(&file.path);
        let action = match (file.action, file.outcome) {
            (Some(FileAction::Removed), FileOutcome::Planned) => " (would be removed)",
            (Some(FileAction::Removed), _) => " (removed)",
            (Some(FileAction::Permissions), _) => " (permissions)",
            (Some(FileAction::Written) | None, _) => "",
        };
        let why = file.why.as_deref().map(in_one_line);
        match (file.outcome, why) {
            (FileOutcome::Restored | FileOutcome::Planned, _) | (_, None) => {
                format!("  {path}{action}")
            }
            (_, Some(why)) => format!("  {path}: {why}"),
        }
    }));
    if !done.not_restored.is_empty() {
        lines.push("not restored:".to_owned());
        let not_restored = done.not_restored.iter();
        lines.extend(not_restored.map(|it| format!("  {}", line(it))));
    }
    let is_done = matches!(done.outcome, FilesOutcome::Done | FilesOutcome::Failed);
    if let Some(undo) = done.undo.as_ref().filter(|_| is_done) {
        lines.push(format!("  undo: {undo}"));
    }
    lines
}

/// `2 files restored, 1 removed`, or what a dry run would do.
pub fn counted(done: &RestoredFiles) -> String {
    let is_removed = |file: &&RestoredFile| file.action == Some(FileAction::Removed);
    let removed = done.files.iter().filter(is_removed).count();
    let restored = count((done.files.len() - removed) as u64, "file");
    let would_be = match done.outcome {
        FilesOutcome::Planned => "would be ",
        _ => "",
    };
    match removed {
        0 => format!("{restored} {would_be}restored"),
        all if all == done.files.len() => {
            format!("{} {would_be}removed", count(all as u64, "file"))
        }
        some => format!("{restored} {would_be}restored, {some} removed"),
    }
}

/// The files that an agent has changed.
pub fn changed(changed: &ChangedFiles, dir: Option<&Path>, now: Timestamp) -> Vec<String> {
    let mut lines: Vec<String> = changed
        .files
        .iter()
        .map(|file| of_changed(file, dir, now))
        .collect();
    if lines.is_empty() {
        lines.push("no changes of files are recorded".to_owned());
    }
    lines.extend(changed.unknown.iter().map(unknown));
    let (kept, limit) = (size(changed.kept_bytes), size(changed.limit_bytes));
    let undo = count(changed.undo_levels as u64, "restore");
    lines.push(format!(
        "{QUIET}{kept} of {limit} kept; {undo} can be undone{QUIET:#}"
    ));
    lines
}

fn of_changed(file: &ChangedFile, dir: Option<&Path>, now: Timestamp) -> String {
    let path = dir.and_then(|dir| Path::new(&file.path).strip_prefix(dir).ok());
    let path = path.map_or_else(|| file.path.clone(), |path| path.display().to_string());
    let path = quoted(&path);
    let mut by: Vec<ChangeBy> = file.changes.iter().map(|change| change.by).collect();
    by.sort_unstable();
    by.dedup();
    let by = by.iter().map(|by| match by {
        ChangeBy::Tool => "tool",
        ChangeBy::Command => "command",
        ChangeBy::Restore => "restore",
    });
    let by = by.collect::<Vec<_>>().join(", ");
    let times = count(file.changes.len() as u64, "change");
    let last = file.changes.last();
    let ago = last.map_or_else(String::new, |change| time::ago(change.at, now));
    let cannot = file.cannot_restore;
    let turn = file.cannot_restore_turn;
    let turn = turn.map_or_else(String::new, |turn| format!(" (turn {turn})"));
    let cannot = cannot.map(|why| format!("; cannot be restored: {}{turn}", why.text()));
    format!(
        "{path}  {times} by {by}, {ago}{}",
        cannot.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests;
