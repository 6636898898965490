//! What turns changed in files, as a difference.

use super::list::by;
use super::sandbox::ToolSandbox;
use super::{after, contents, history, named, position};
use crate::clock;
use crate::daemon::AgentHandle;
use crate::error::{Error, Kind, Result};
use crate::turns;
use agentd_client::api::{DiffChange, DiffFiles, FileDiff, FilesDiff, NotRestored};
use agentd_core::event::{FileState, ScannedChange};
use agentd_core::files::{Change, ChangedBy, Earlier, History, IsDone, Left, Selection};
use agentd_core::id::{ConversationId, OpId, Seq, TurnId};
use agentd_core::state::{AgentState, Segment};
use similar::TextDiff;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// After this time a difference is shown that is correct, but longer than necessary.
const TIME: Duration = Duration::from_secs(2);
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

/// Which changes are shown.
enum Range {
    Turn(TurnId),
    Since(Seq),
    /// A conversation with what it branched off.
    Lineage(Vec<Segment>),
}

impl Range {
    fn has(&self, change: &Change) -> bool {
        self.has_at(change.seq, change.turn, Some(change.conversation))
    }

    fn has_at(&self, seq: Seq, turn: Option<TurnId>, conversation: Option<ConversationId>) -> bool {
        match self {
            Self::Turn(wanted) => turn == Some(*wanted),
            Self::Since(after) => seq > *after,
            Self::Lineage(segments) => segments.iter().any(|segment| {
                let is_here = conversation.is_none_or(|it| it == segment.conversation);
                is_here && seq <= segment.through
            }),
        }
    }
}

async fn range(handle: &AgentHandle, state: &AgentState, ask: &DiffFiles) -> Result<Range> {
    let conversation = ask.conversation.or(state.tree.current());
    let Some(conversation) = conversation else {
        return Ok(Range::Lineage(Vec::new()));
    };
    if let Some(called) = &ask.turn {
        let found = turns::find(&handle.daemon, state, conversation, called).await?;
        return found.map(|turn| Range::Turn(turn.id)).ok_or_else(|| {
            let what = format!("`{}` has no turn {called}", state.name);
            let next = format!("`agentd show {} --conversation N` lists turns", state.name);
            Error::new(Kind::NotFound, what).next(next)
        });
    }
    if let Some(called) = &ask.since {
        let since = position(handle, state, Some(conversation), called).await?;
        return Ok(Range::Since(since));
    }
    if state.tree.get(conversation).is_none() {
        let what = format!("`{}` has no conversation {conversation}", state.name);
        return Err(Error::new(Kind::NotFound, what));
    }
    let lineage = state.tree.lineage(state.id, conversation, Seq(u64::MAX));
    Ok(Range::Lineage(lineage.segments))
}

/// One path: its changes in the range, and what followed.
struct PathChanges<'a> {
    path: &'a str,
    changes: Vec<&'a Change>,
    /// The first change after the range.
    next: Option<&'a Change>,
}

impl PathChanges<'_> {
    /// Whether the first change is one of a command, and the newest commit does not have the path.
    fn is_added(&self) -> bool {
        let first = self.changes.first().map(|change| &change.by);
        matches!(first, Some(ChangedBy::Command(ScannedChange::Added)))
    }
}

async fn own(handle: &AgentHandle, ask: &DiffFiles) -> Result<FilesDiff> {
    super::begin::wait_scanned(handle).await;
    let sandbox = ToolSandbox::of(handle, &BTreeMap::new()).await;
    let selection = sandbox.selection(&ask.paths).await;
    let state = handle.lock().await.state.clone();
    let range = range(handle, &state, ask).await?;
    let history = history(&handle.daemon, handle.id, state.head).await?;
    let paths = paths(&history, &range, &selection);
    let op = OpId::new(clock::new_id());
    let dir = handle.daemon.layout.restore_dir(handle.id, op);
    let now = after::on_disk(handle, &sandbox, &dir, wanted_now(&paths)).await;
    let mut files = Vec::new();
    for path in &paths {
        files.push(of_path(handle, &sandbox, path, &now, ask).await?);
    }
    let sum = |count: fn(&FileDiff) -> u64| files.iter().map(count).sum();
    Ok(FilesDiff {
        agent: named(handle).await,
        added: sum(|file| file.added),
        removed: sum(|file| file.removed),
        unknown: unknown(&history, &range, &selection),
        files,
        subagents: Vec::new(),
    })
}

fn paths<'a>(history: &'a History, range: &Range, selection: &Selection) -> Vec<PathChanges<'a>> {
    let mut paths: BTreeMap<&str, PathChanges<'_>> = BTreeMap::new();
    let made = history.changes().iter();
    for change in made.filter(|change| change.done != IsDone::No && selection.has(&change.path)) {
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

fn unknown(history: &History, range: &Range, selection: &Selection) -> Vec<NotRestored> {
    if !selection.is_all() {
        return Vec::new();
    }
    let gaps = history.gaps().iter();
    let gaps = gaps.filter(|gap| range.has_at(gap.seq, Some(gap.turn), None));
    gaps.map(|gap| NotRestored {
        path: None,
        turn: Some(gap.turn),
        why: gap.why,
    })
    .collect()
}

/// A content before or after the range.
enum Side {
    Absent,
    Content(Vec<u8>),
    Link(String),
    Unknown(&'static str),
}

async fn of_path(
    handle: &AgentHandle,
    sandbox: &ToolSandbox,
    path: &PathChanges<'_>,
    now: &after::OnDisk,
    ask: &DiffFiles,
) -> Result<FileDiff> {
    let before = match path.changes.first() {
        Some(first) => earlier(handle, first).await?,
        None => Side::Unknown(UNKNOWN_BEFORE),
    };
    let later = later(handle, path, &before, now).await?;
    let name = Path::new(path.path)
        .strip_prefix(&sandbox.cwd)
        .map_or_else(|_| path.path.to_owned(), |name| name.display().to_string());
    let mut file = FileDiff {
        path: path.path.to_owned(),
        name,
        by: path
            .changes
            .iter()
            .map(|it| by(it))
            .min()
            .unwrap_or(agentd_client::api::ChangeBy::Tool),
        change: match (&before, &later) {
            (Side::Absent, Side::Absent) => DiffChange::Unchanged,
            (Side::Absent, _) => DiffChange::Created,
            (_, Side::Absent) => DiffChange::Deleted,
            // It is in no commit. Whether it was there before the command is not known.
            (Side::Unknown(_), _) if path.is_added() => DiffChange::Created,
            _ => DiffChange::Edited,
        },
        added: 0,
        removed: 0,
        diff: None,
        note: None,
    };
    compare(&mut file, before, later, ask.stat);
    file.diff = file.diff.map(|diff| sandbox.secrets.redact(&diff));
    Ok(file)
}

const UNKNOWN_BEFORE: &str = "the content before is no longer known";
const UNKNOWN_AFTER: &str = "the content after is no longer known";
const BY_COMMAND: &str = "a command changed it";
const TOO_LARGE: &str = "it is too large to be compared";

async fn earlier(handle: &AgentHandle, change: &Change) -> Result<Side> {
    Ok(match &change.before {
        Earlier::Kept { at, state, size } => kept(handle, *at, state, *size).await?,
        Earlier::NotKept(_) => Side::Unknown("the content before was not kept"),
        Earlier::Git(_) => Side::Unknown(BY_COMMAND),
    })
}

async fn kept(handle: &AgentHandle, at: Seq, state: &FileState, size: u64) -> Result<Side> {
    Ok(match state {
        FileState::Absent => Side::Absent,
        FileState::Symlink { target } => Side::Link(target.clone()),
        FileState::File { .. } if size > after::LARGEST => Side::Unknown(TOO_LARGE),
        FileState::File { .. } => match contents::load(&handle.daemon, handle.id, at).await? {
            Some(content) => Side::Content(content),
            None => Side::Unknown(UNKNOWN_BEFORE),
        },
    })
}

/// What the range left: what the next change found, or what is on disk, or what the call wrote.
async fn later(
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

fn compare(file: &mut FileDiff, before: Side, later: Side, stat: bool) {
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
