//! The contents before and after a range of changes, and their difference.

use super::after;
use super::contents;
use crate::daemon::AgentHandle;
use crate::error::Result;
use agentd_client::api::{DiffChange, FileDiff};
use agentd_core::event::{FileState, Position, ScannedChange};
use agentd_core::files::{Change, ChangedBy, Earlier, Left};
use similar::TextDiff;
use std::time::Duration;

/// After this time a difference is shown that is correct, but longer than necessary.
const TIME: Duration = Duration::from_secs(2);

pub const UNKNOWN_BEFORE: &str = "the content before is no longer known";
const UNKNOWN_AFTER: &str = "the content after is no longer known";
pub const NOT_KEPT: &str = "the content before was not kept";
pub const TOO_LARGE: &str = "it is too large to be compared";

/// One path: its changes in the range, and what followed.
pub struct PathChanges<'a> {
    pub path: &'a str,
    pub changes: Vec<&'a Change>,
    /// The first change after the range.
    pub next: Option<&'a Change>,
}

impl PathChanges<'_> {
    /// Whether the first change is one of a command, and the newest commit does not have the path.
    pub fn is_added(&self) -> bool {
        let first = self.changes.first().map(|change| &change.by);
        matches!(first, Some(ChangedBy::Command(ScannedChange::Added)))
    }

    /// Whether the first change is one of permission bits, by a command.
    pub fn begins_with_mode(&self) -> bool {
        let first = self.changes.first();
        first.is_some_and(|first| first.mode_before.is_some())
    }

    /// Whether the permission bits after the range are others than before it, as far as that is known.
    pub fn has_new_mode(&self, now: &after::OnDisk) -> bool {
        let (Some(first), Some(last)) = (self.changes.first(), self.changes.last()) else {
            return false;
        };
        let after = match self.next {
            Some(next) => match &next.before {
                Earlier::Kept { state, .. } => Some(state),
                _ => None,
            },
            None => now.get(self.path).map(|(state, _)| state),
        };
        let after = match after.filter(|state| last.after.is(state)) {
            Some(FileState::File { mode, .. }) => *mode,
            // It is not known, but only the bits were changed.
            _ => return self.changes.len() == 1 && first.mode_before.is_some(),
        };
        match (first.mode_before, &first.before) {
            (Some(before), _) => before != after,
            (None, Earlier::Kept { state, .. }) => {
                matches!(state, FileState::File { mode, .. } if *mode != after)
            }
            // Git knows only whether a file is executable.
            (None, Earlier::Git(objects)) => {
                let mut objects = objects.iter();
                objects
                    .next()
                    .is_some_and(|(_, mode)| (mode ^ after) & 0o100 != 0)
            }
            (None, Earlier::NotKept(_)) => false,
        }
    }
}

/// A content before or after the range.
pub enum Side {
    Absent,
    Content(Vec<u8>),
    Link(String),
    Unknown(&'static str),
}

pub async fn kept(
    handle: &AgentHandle,
    at: Position,
    state: &FileState,
    size: u64,
) -> Result<Side> {
    Ok(match state {
        FileState::Absent => Side::Absent,
        FileState::Symlink { target } => Side::Link(target.clone()),
        FileState::File { .. } if size > after::LARGEST => Side::Unknown(TOO_LARGE),
        FileState::File { .. } => match contents::load(&handle.daemon, at).await? {
            Some(content) => Side::Content(content),
            None => Side::Unknown(UNKNOWN_BEFORE),
        },
    })
}

/// What the range left: what the next change found, or what is on disk, or what the call wrote.
pub async fn later(
    handle: &AgentHandle,
    path: &PathChanges<'_>,
    before: &Side,
    now: &after::OnDisk,
) -> Result<Side> {
    let Some(last) = path.changes.last() else {
        return Ok(Side::Unknown(UNKNOWN_AFTER));
    };
    if let Some(Earlier::Kept { at, state, size }) = path.next.map(|next| &next.before)
        && last.after.is(state)
    {
        return kept(handle, *at, state, *size).await;
    }
    if let (None, Some((state, content))) = (path.next, now.get(path.path))
        && last.after.is(state)
    {
        return Ok(match (state, content) {
            (FileState::Absent, _) => Side::Absent,
            (FileState::Symlink { target }, _) => Side::Link(target.clone()),
            (FileState::File { .. }, Some(content)) => Side::Content(content.clone()),
            (FileState::File { .. }, None) => Side::Unknown(TOO_LARGE),
        });
    }
    let earlier = match (path.changes.as_slice(), before) {
        ([_], Side::Content(content)) => Some(content.as_slice()),
        _ => None,
    };
    match &last.after {
        Left::Absent => Ok(Side::Absent),
        Left::Symlink(target) => Ok(Side::Link(target.clone())),
        Left::Content(hash) => {
            let written = after::written(handle, last, hash, earlier).await?;
            Ok(written.map_or(Side::Unknown(UNKNOWN_AFTER), Side::Content))
        }
        Left::SymlinkOf(_) | Left::Unknown => Ok(Side::Unknown(UNKNOWN_AFTER)),
    }
}

/// Adds the lines, or why there are none.
pub fn compare(file: &mut FileDiff, before: Side, later: Side, stat: bool) {
    let text = |side: Side| match side {
        Side::Absent => Ok(String::new()),
        Side::Link(target) => Ok(format!("{target}\n")),
        Side::Content(content) => match String::from_utf8(content) {
            Ok(text) if !text.contains('\0') => Ok(text),
            _ => Err("binary content"),
        },
        Side::Unknown(why) => Err(why),
    };
    let (old, new) = match (text(before), text(later)) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(why), _) | (_, Err(why)) => {
            file.note = Some(why.to_owned());
            return;
        }
    };
    if old == new && file.change == DiffChange::Edited {
        file.change = DiffChange::Unchanged;
        return;
    }
    let diff = TextDiff::configure().timeout(TIME).diff_lines(&old, &new);
    for change in diff.iter_all_changes() {
        match change.tag() {
            similar::ChangeTag::Insert => file.added += 1,
            similar::ChangeTag::Delete => file.removed += 1,
            similar::ChangeTag::Equal => {}
        }
    }
    if !stat {
        let (from, to) = match file.change {
            DiffChange::Created => ("/dev/null".to_owned(), format!("b/{}", file.name)),
            DiffChange::Deleted => (format!("a/{}", file.name), "/dev/null".to_owned()),
            _ => (format!("a/{}", file.name), format!("b/{}", file.name)),
        };
        file.diff = Some(diff.unified_diff().header(&from, &to).to_string());
    }
}
