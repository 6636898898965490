//! What the model is told about restored files: which of them are no longer what it knows.

use crate::daemon::Daemon;
use crate::error::Result;
use agentd_core::event::{Body, Kind, Notice, NoticeCause, RestoredFile, RestoredOutcome};
use agentd_core::id::{AgentId, ConversationId, Seq};
use agentd_core::plain::quoted;
use agentd_store::ReadQuery;
use std::collections::BTreeSet;

/// Names of files in a notice.
const NAMED: usize = 20;
/// Events that are read at once.
const PAGE: usize = 100;

pub fn is_restored(file: &RestoredFile) -> bool {
    file.outcome == RestoredOutcome::Restored
}

/// A notice about these files; `None` if there is none.
pub fn notice(what: &str, files: &[RestoredFile]) -> Option<Body> {
    let restored = files.iter().filter(|file| is_restored(file));
    let names: Vec<&str> = restored.map(|file| file.path.as_str()).collect();
    text(what, &names)
}

fn text(what: &str, names: &[&str]) -> Option<Body> {
    if names.is_empty() {
        return None;
    }
    let shown = names.iter().take(NAMED).map(|name| quoted(name));
    let shown = shown.collect::<Vec<_>>();
    let shown = shown.join(", ");
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let text = format!("{what}: {shown}{more}. Read a file again before you rely on its content.");
    let cause = NoticeCause::FilesRestored;
    Some(Notice { cause, text }.into())
}

/// The files that were restored after an event, while another conversation was the current one: the model of this one
/// was not told.
pub async fn meanwhile(
    daemon: &Daemon,
    agent: AgentId,
    conversation: ConversationId,
    since: Seq,
) -> Result<Option<Body>> {
    let what = "While this conversation was not the current one, the user restored files to an earlier state";
    let mut names = BTreeSet::new();
    let mut after = since;
    loop {
        let query = ReadQuery {
            kinds: &[Kind::FilesRestored],
            ..ReadQuery::all(agent, after, PAGE)
        };
        let page = daemon.store.read(query).await?;
        let others = page.events.into_iter();
        for event in others.filter(|event| event.conversation != conversation) {
            match event.body {
                Body::FilesRestored(restored) => {
                    let restored = restored.files.into_iter().filter(is_restored);
                    names.extend(restored.map(|file| file.path));
                }
                // Purged with its conversation.
                _ => drop(names.insert("files whose names were deleted".to_owned())),
            }
        }
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Ok(text(what, &names))
}
