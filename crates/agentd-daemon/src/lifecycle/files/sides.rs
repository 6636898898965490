//! The contents before and after a range of changes, and their difference.

use super::after::{self, AtPath};
use super::contents;
use crate::daemon::AgentHandle;
use crate::error::Result;
use agentd_client::api::{DiffChange, FileDiff};
use agentd_core::event::{FileState, Position, ScannedChange};
use agentd_core::files::{Change, ChangedBy, Earlier, Left};
use agentd_core::plain::quoted;
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// After this time a difference is shown that is correct, but longer than necessary.
const TIME: Duration = Duration::from_secs(2);

pub const UNKNOWN_BEFORE: &str = "the content before is no longer known";
const UNKNOWN_AFTER: &str = "the content after is no longer known";
pub const NOT_KEPT: &str = "the content before was not kept";
const TOO_LARGE: &str = "it is too large to be compared";
const EMPTY: &str = "an empty file";

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
            None => match now.get(self.path) {
                Some(AtPath::Known(state, _)) => Some(state),
                _ => None,
            },
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
    Content {
        bytes: Vec<u8>,
        /// The permission bits, if they are known.
        mode: Option<u32>,
    },
    Link(String),
    /// With its size, if that is known.
    TooLarge(Option<u64>),
    Unknown(&'static str),
}

impl Side {
    /// What git calls the mode of a file or a symlink.
    const fn mode(&self) -> Option<&'static str> {
        match self {
            Self::Content {
                mode: Some(mode), ..
            } if *mode & 0o111 != 0 => Some("100755"),
            Self::Content { .. } => Some("100644"),
            Self::Link(_) => Some("120000"),
            Self::Absent | Self::TooLarge(_) | Self::Unknown(_) => None,
        }
    }

    const fn is_link(&self) -> bool {
        matches!(self, Self::Link(_))
    }

    /// Its lines, or why there are none. The target of a symlink is a line without an end, as git shows it.
    fn text(self) -> Result<String, String> {
        match self {
            Self::Absent => Ok(String::new()),
            Self::Link(target) => Ok(target),
            Self::Content { bytes, .. } => match String::from_utf8(bytes) {
                Ok(text) if !text.contains('\0') => Ok(text),
                _ => Err("binary content".to_owned()),
            },
            Self::TooLarge(Some(size)) => Err(format!("{TOO_LARGE} ({size} bytes)")),
            Self::TooLarge(None) => Err(TOO_LARGE.to_owned()),
            Self::Unknown(why) => Err(why.to_owned()),
        }
    }
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
        FileState::File { .. } if size > after::LARGEST => Side::TooLarge(Some(size)),
        FileState::File { mode, .. } => match contents::load(&handle.daemon, at).await? {
            Some(bytes) => Side::Content {
                bytes,
                mode: Some(*mode),
            },
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
    let mut unknown = Side::Unknown(UNKNOWN_AFTER);
    match (path.next, now.get(path.path)) {
        (None, Some(AtPath::Known(state, content))) if last.after.is(state) => {
            return Ok(match (state, content) {
                (FileState::Absent, _) => Side::Absent,
                (FileState::Symlink { target }, _) => Side::Link(target.clone()),
                (FileState::File { mode, .. }, Some(bytes)) => Side::Content {
                    bytes: bytes.clone(),
                    mode: Some(*mode),
                },
                (FileState::File { .. }, None) => Side::TooLarge(None),
            });
        }
        (None, Some(AtPath::TooLarge(size))) => unknown = Side::TooLarge(Some(*size)),
        _ => {}
    }
    let earlier = match (path.changes.as_slice(), before) {
        ([_], Side::Content { bytes, .. }) => Some(bytes.as_slice()),
        _ => None,
    };
    match &last.after {
        Left::Absent => Ok(Side::Absent),
        Left::Symlink(target) => Ok(Side::Link(target.clone())),
        Left::Content(hash) => {
            let written = after::written(handle, last, hash, earlier).await?;
            Ok(written.map_or(unknown, |bytes| Side::Content { bytes, mode: None }))
        }
        Left::SymlinkOf(_) | Left::Unknown => Ok(unknown),
    }
}

/// Adds the lines, or why there are none.
pub fn compare(file: &mut FileDiff, before: Side, later: Side, stat: bool) {
    let modes = modes(&before, &later);
    let (old, new) = match (before.text(), later.text()) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(why), _) | (_, Err(why)) => {
            file.note = Some(why);
            return;
        }
    };
    if old == new && modes.is_none() {
        match file.change {
            DiffChange::Edited => file.change = DiffChange::Unchanged,
            DiffChange::Created | DiffChange::Deleted => file.note = Some(EMPTY.to_owned()),
            DiffChange::Unchanged | DiffChange::Permissions => {}
        }
        return;
    }
    // Only at line feeds: a carriage return is a part of its line.
    let [old, new] = [&old, &new].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let diff = TextDiff::configure().timeout(TIME).diff_slices(&old, &new);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => file.added += 1,
            ChangeTag::Delete => file.removed += 1,
            ChangeTag::Equal => {}
        }
    }
    if !stat {
        let old = quoted_in("a", &file.name);
        let new = quoted_in("b", &file.name);
        let none = "/dev/null".to_owned();
        let (from, to) = match file.change {
            DiffChange::Created => (none, new),
            DiffChange::Deleted => (old, none),
            _ => (old, new),
        };
        let modes = modes.unwrap_or_default();
        let lines = unified(&diff);
        file.diff = Some(format!("{modes}--- {from}\n+++ {to}\n{lines}"));
    }
}

/// `a/src/main.rs`. The model chooses names: none may look like another line of the difference. A file outside the working
/// directory has an absolute name.
fn quoted_in(side: &str, name: &str) -> String {
    let name = name.trim_start_matches('/');
    quoted(&format!("{side}/{name}")).into_owned()
}

/// The lines about a symlink, as git has them: otherwise its target would look like a content.
fn modes(before: &Side, later: &Side) -> Option<String> {
    if before.is_link() == later.is_link() {
        return None;
    }
    match (before.mode(), later.mode()) {
        (Some(old), Some(new)) => Some(format!("old mode {old}\nnew mode {new}\n")),
        (None, Some(new)) => Some(format!("new file mode {new}\n")),
        (Some(old), None) => Some(format!("deleted file mode {old}\n")),
        (None, None) => None,
    }
}

fn unified(diff: &TextDiff<'_, '_, str>) -> String {
    let mut text = String::new();
    for hunk in diff.unified_diff().iter_hunks() {
        text += &format!("{}\n", hunk.header());
        for change in hunk.iter_changes() {
            let line = change.value();
            text += &format!("{}{line}", change.tag());
            if !line.ends_with('\n') {
                text += "\n\\ No newline at end of file\n";
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_client::api::ChangeBy;

    fn compared(name: &str, change: DiffChange, before: Side, later: Side) -> FileDiff {
        let path = format!("/home/user/project/{name}");
        let mut file = FileDiff::new(path, name.to_owned(), ChangeBy::Tool, change);
        compare(&mut file, before, later, false);
        file
    }

    fn content(text: &str) -> Side {
        Side::Content {
            bytes: text.as_bytes().to_vec(),
            mode: Some(0o755),
        }
    }

    #[test]
    fn an_absolute_name_has_no_doubled_slash() {
        let file = compared("/opt/a", DiffChange::Created, Side::Absent, content("a\n"));
        let diff = file.diff.unwrap();
        assert!(diff.starts_with("--- /dev/null\n+++ b/opt/a\n"), "{diff}");
    }

    #[test]
    fn a_name_cannot_forge_lines() {
        let name = "x\n+++ b/README\n@@ -1 +1 @@\n-safe\n+evil\u{202e}";
        let file = compared(name, DiffChange::Created, Side::Absent, content("one\n"));
        let lines = "--- /dev/null\n\
                     +++ \"b/x\\n+++ b/README\\n@@ -1 +1 @@\\n-safe\\n+evil\\342\\200\\256\"\n\
                     @@ -0,0 +1 @@\n+one\n";
        assert_eq!(file.diff.as_deref(), Some(lines));
    }

    #[test]
    fn line_ends_are_part_of_lines() {
        let (old, new) = (content("a\nb\n"), content("a\r\nx\ry\n"));
        let file = compared("a", DiffChange::Edited, old, new);
        let lines = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-a\n-b\n+a\r\n+x\ry\n";
        assert_eq!(file.diff.as_deref(), Some(lines));
        assert_eq!((file.added, file.removed), (2, 2));
        // The last line ends with a carriage return, and has no line feed.
        let (old, new) = (content("a\n"), content("a\nb\r"));
        let file = compared("a", DiffChange::Edited, old, new);
        let end = " a\n+b\r\n\\ No newline at end of file\n";
        assert!(file.diff.as_ref().unwrap().ends_with(end), "{file:?}");
    }

    #[test]
    fn a_change_of_type_is_not_one_of_content() {
        let link = || Side::Link("s.txt".to_owned());
        let file = compared("u", DiffChange::Edited, content("u\n"), link());
        let lines = "old mode 100755\nnew mode 120000\n--- a/u\n+++ b/u\n@@ -1 +1 @@\n-u\n+s.txt\n\
                     \\ No newline at end of file\n";
        assert_eq!(file.diff.as_deref(), Some(lines));
        // The content is the same text as the target.
        let file = compared("u", DiffChange::Edited, link(), content("s.txt"));
        assert_eq!(file.change, DiffChange::Edited);
        let lines = "old mode 120000\nnew mode 100755\n--- a/u\n+++ b/u\n";
        assert_eq!(file.diff.as_deref(), Some(lines));
        let file = compared("u", DiffChange::Created, Side::Absent, link());
        let begin = "new file mode 120000\n--- /dev/null\n+++ b/u\n";
        assert!(file.diff.as_ref().unwrap().starts_with(begin), "{file:?}");
    }

    #[test]
    fn a_file_that_is_not_read_has_its_size_instead_of_lines() {
        let later = Side::TooLarge(Some(5_000_000));
        let file = compared("a", DiffChange::Edited, content("a\n"), later);
        assert_eq!(file.diff, None);
        let note = "it is too large to be compared (5000000 bytes)";
        assert_eq!(file.note.as_deref(), Some(note));
    }
}
