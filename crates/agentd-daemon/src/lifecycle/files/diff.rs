//! What turns changed in files, as a difference.

use super::before_command::{BeforeCommand, COMPARED_WITH_GIT};
use super::lineage;
use super::list::by;
use super::range::Range;
use super::sandbox::ToolSandbox;
use super::sides::{self, PathChanges, Side};
use super::{after, doubt, history, named, names, of_background};
use crate::clock;
use crate::daemon::AgentHandle;
use crate::error::Result;
use agentd_client::api::{ChangeBy, DiffChange, DiffFiles, FileDiff, FilesDiff, NotRestored};
use agentd_core::files::{self, History, Selection};
use agentd_core::id::OpId;
use std::collections::BTreeMap;
use std::path::Path;

const SAME_CONTENT: &str = "the content is the same";
/// How many subagents of subagents are followed.
const DEPTH: usize = 8;

pub async fn diff(handle: &AgentHandle, ask: DiffFiles) -> Result<FilesDiff> {
    let mut whole = own(handle, &ask).await?;
    if ask.tree {
        whole.subagents = below(handle, &ask, DEPTH).await?;
    }
    Ok(whole)
}

/// The changes of subagents, each with its own.
async fn below(handle: &AgentHandle, ask: &DiffFiles, depth: usize) -> Result<Vec<FilesDiff>> {
    let children: Vec<_> = {
        let guard = handle.lock().await;
        let children = guard.state.children.iter();
        children.map(|(agent, _)| *agent).collect()
    };
    let of_child = DiffFiles {
        turn: None,
        since: None,
        conversation: None,
        ..ask.clone()
    };
    let mut all = Vec::new();
    for child in children {
        let Some(child) = handle.daemon.existing(child).await? else {
            continue;
        };
        let mut one = own(&child, &of_child).await?;
        if depth > 0 {
            one.subagents = Box::pin(below(&child, ask, depth - 1)).await?;
        }
        if !one.files.is_empty() || !one.unknown.is_empty() || !one.subagents.is_empty() {
            all.push(one);
        }
    }
    Ok(all)
}

async fn own(handle: &AgentHandle, ask: &DiffFiles) -> Result<FilesDiff> {
    super::begin::wait_scanned(handle).await;
    let sandbox = ToolSandbox::of(handle, &BTreeMap::new()).await;
    let selection = sandbox.selection(&ask.paths).await;
    let state = handle.lock().await.state.clone();
    let ancestors = lineage::ancestors(handle, &state).await?;
    let history = history(handle, &state, &ancestors, state.head).await?;
    let range = Range::of(handle, (&state, ancestors.as_slice()), &history, ask).await?;
    let paths = paths(&history, &range, &selection);
    let op = OpId::new(clock::new_id());
    let dir = handle.daemon.layout.restore_dir(handle.id, op);
    let now = after::on_disk(handle, &sandbox, &dir, wanted_now(&paths)).await;
    let commands = BeforeCommand::find(handle, &sandbox, &history, &paths).await?;
    let mut files = Vec::new();
    for path in &paths {
        let file = of_path(handle, &sandbox, path, (&commands, &now), ask).await?;
        files.push(file);
    }
    let mut unknown = unknown(&history, &range, &selection);
    let background = of_background(&state).filter(|it| {
        let now = history.own(state.head);
        selection.is_all() && range.has_at(now, it.turn, state.tree.current())
    });
    unknown.extend(background);
    names::number(handle, &state, &history, &mut unknown).await?;
    let sum = |count: fn(&FileDiff) -> u64| files.iter().map(count).sum();
    Ok(FilesDiff {
        agent: named(handle).await,
        added: sum(|file| file.added),
        removed: sum(|file| file.removed),
        unknown,
        files,
        subagents: Vec::new(),
    })
}

fn paths<'a>(history: &'a History, range: &Range, selection: &Selection) -> Vec<PathChanges<'a>> {
    let mut paths: BTreeMap<&str, PathChanges<'_>> = BTreeMap::new();
    let made = history.changes().iter();
    for change in made.filter(|change| change.done.is_listed() && selection.has(&change.path)) {
        match range.has(change) {
            true => {
                let path = paths.entry(&change.path).or_insert(PathChanges {
                    path: &change.path,
                    changes: Vec::new(),
                    next: None,
                });
                path.changes.push(change);
                path.next = None;
            }
            false => {
                if let Some(path) = paths.get_mut(change.path.as_str()) {
                    path.next.get_or_insert(change);
                }
            }
        }
    }
    paths.into_values().collect()
}

/// The paths whose content after the range may be what is on disk.
fn wanted_now(paths: &[PathChanges<'_>]) -> Vec<String> {
    let now = paths.iter().filter(|path| path.next.is_none());
    now.map(|path| path.path.to_owned()).collect()
}

/// What changed in the range and cannot be shown, or not completely.
fn unknown(history: &History, range: &Range, selection: &Selection) -> Vec<NotRestored> {
    let lost = history.lost().iter();
    let lost = lost.filter(|it| it.done.is_listed() && range.has_at(it.order, it.turn, None));
    let lost = lost.flat_map(|it| it.files.iter().map(move |file| (it, file)));
    let mut unknown = files::no_longer_kept(lost, selection);
    if !selection.is_all() {
        unknown.retain(|it| it.path.is_some());
        return unknown;
    }
    let gaps = history.gaps().iter();
    let gaps = gaps.filter(|gap| range.has_at(gap.order, Some(gap.turn), None));
    unknown.extend(gaps.map(|gap| NotRestored::new(None, Some(gap.turn), gap.why)));
    unknown
}

async fn of_path(
    handle: &AgentHandle,
    sandbox: &ToolSandbox,
    path: &PathChanges<'_>,
    (commands, now): (&BeforeCommand, &after::OnDisk),
    ask: &DiffFiles,
) -> Result<FileDiff> {
    let before = commands.earlier(handle, path).await?;
    let later = sides::later(handle, path, &before, now).await?;
    let name = Path::new(path.path)
        .strip_prefix(&sandbox.cwd)
        .map_or_else(|_| path.path.to_owned(), |name| name.display().to_string());
    let by = path.changes.iter().map(|it| by(it)).min();
    let change = match (&before, &later) {
        (Side::Absent, Side::Absent) => DiffChange::Unchanged,
        (Side::Absent, _) => DiffChange::Created,
        (_, Side::Absent) => DiffChange::Deleted,
        // It is in no commit. Whether it was there before the command is not known.
        (Side::Unknown(_), _) if path.is_added() && !path.begins_with_mode() => DiffChange::Created,
        _ => DiffChange::Edited,
    };
    let mut file = FileDiff::new(
        path.path.to_owned(),
        name,
        by.unwrap_or(ChangeBy::Tool),
        change,
    );
    match path.changes.as_slice() {
        [_] if path.begins_with_mode() => file.change = DiffChange::Unchanged,
        _ => sides::compare(&mut file, before, later, ask.stat),
    }
    if file.change == DiffChange::Unchanged && path.has_new_mode(now) {
        file.change = DiffChange::Permissions;
        file.note = Some(SAME_CONTENT.to_owned());
    }
    if file.added + file.removed > 0 && commands.is_guess(path.path) {
        file.note = Some(COMPARED_WITH_GIT.to_owned());
    }
    doubt::add(&mut file, &path.changes);
    file.diff = file.diff.map(|diff| sandbox.secrets.redact(&diff));
    Ok(file)
}
