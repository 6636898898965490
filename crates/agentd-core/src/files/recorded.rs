//! Changes as single events record them.

use super::change::{Change, ChangedBy, Earlier, IsDone, Left, Order};
use crate::event::{
    Event, FileBefore, FileState, GitBefore, KeptContent, Oid, Position, ScannedChange,
    ScannedFile, ToolStarted,
};
use crate::id::TurnId;

/// A change of one path, as the start of a call records it.
pub(super) struct Recorded<'a> {
    pub file: Option<&'a str>,
    pub before: Option<&'a str>,
    pub after: Option<&'a str>,
}

impl Recorded<'_> {
    pub fn left(&self) -> Left {
        self.after
            .map_or(Left::Absent, |hash| Left::Content(hash.to_owned()))
    }
}

/// The changes that a call was to make to files of the user, without those that change nothing.
pub(super) fn changes(started: &ToolStarted) -> Vec<Recorded<'_>> {
    let one = started.change.iter().filter(|change| !change.is_private);
    let one = one.map(|change| Recorded {
        file: change.file.as_deref(),
        before: change.before.as_deref(),
        after: Some(&change.after),
    });
    let several = started.patched.iter().filter(|file| !file.is_private);
    let several = several.map(|file| Recorded {
        file: file.file.as_deref(),
        before: file.before.as_deref(),
        after: file.after.as_deref(),
    });
    let all = one.chain(several);
    all.filter(|change| change.before != change.after).collect()
}

pub(super) fn is_before(earlier: &Earlier, hash: Option<&str>) -> bool {
    match earlier {
        Earlier::Kept { state, .. } => match state {
            FileState::File { hash: known, .. } => hash == Some(known),
            FileState::Absent | FileState::Symlink { .. } => hash.is_none(),
        },
        Earlier::NotKept(_) => hash.is_some(),
        Earlier::Git(_) => false,
    }
}

pub(super) fn earlier(at: Position, before: &FileBefore) -> Earlier {
    let (state, size) = match before {
        FileBefore::File {
            content: KeptContent::NotKept { why },
            ..
        } => return Earlier::NotKept(*why),
        FileBefore::File {
            mode, size, hash, ..
        } => {
            let (mode, hash) = (*mode, hash.clone());
            (FileState::File { mode, hash }, *size)
        }
        FileBefore::Absent => (FileState::Absent, 0),
        FileBefore::Symlink { target } => {
            let target = target.clone();
            (FileState::Symlink { target }, 0)
        }
    };
    Earlier::Kept { at, state, size }
}

/// The position of an event.
pub(super) const fn position(event: &Event) -> Position {
    Position {
        agent: event.agent,
        seq: event.seq,
    }
}

pub(super) fn of_command(
    event: &Event,
    (turn, order): (TurnId, Order),
    file: &ScannedFile,
) -> Change {
    let mut objects: Vec<(Oid, u32)> = Vec::new();
    let known = match (file.change, file.git_before) {
        // What git has of a file that the newest commit does not have is a content of this turn.
        (ScannedChange::Added, _) => [None, None],
        // The command may have changed the index.
        (_, Some(GitBefore::Clean)) => [None, file.head.as_ref()],
        _ => [file.index.as_ref(), file.head.as_ref()],
    };
    for oid in known.into_iter().flatten() {
        if !objects.iter().any(|(known, _)| known == oid) {
            objects.push((oid.clone(), file.mode));
        }
    }
    Change {
        order,
        event: position(event),
        turn: Some(turn),
        conversation: event.conversation,
        at: event.at,
        path: file.path.clone(),
        by: ChangedBy::Command(file.change),
        before: Earlier::Git(objects),
        mode_before: file.mode_before,
        after: match (&file.after, file.change) {
            (Some(hash), _) if file.link => Left::SymlinkOf(hash.clone()),
            (Some(hash), _) => Left::Content(hash.clone()),
            (None, ScannedChange::Deleted) => Left::Absent,
            (None, _) => Left::Unknown,
        },
        done: IsDone::Yes,
        unsure: file.unsure,
        git_before: file.git_before,
    }
}
