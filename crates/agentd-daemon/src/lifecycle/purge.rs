//! Deletes words for good: of one conversation, or of all of a removed agent's.

mod files;

use crate::clock;
use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::problem::{Result, of_store};
use agentd_client::api::{Purge, Purged};
use agentd_client::{Kind, Problem};
use agentd_core::id::{ConversationId, TaskId};
use std::sync::Arc;

pub async fn purge(daemon: &Arc<Daemon>, desk: &Arc<Desk>, ask: Purge) -> Result<Purged> {
    // Held to the end: nobody decides anything by what is being taken away.
    let mut guard = desk.lock().await;
    let (fence, running, conversations) = {
        let tree = &guard.state.tree;
        let conversations: Vec<ConversationId> = match ask.conversation {
            Some(id) => vec![id],
            None => {
                let left = tree.iter().filter(|it| !it.purged);
                left.map(|conversation| conversation.id).collect()
            }
        };
        for id in &conversations {
            if tree.get(*id).is_none() {
                let what = format!("no conversation {id} of `{}`", guard.state.name);
                return Err(Problem::new(Kind::NotFound, what));
            }
        }
        let current = tree.current().filter(|it| conversations.contains(it));
        if current.is_some() && !guard.state.archived {
            let what = "the current conversation cannot be purged";
            let next = format!(
                "`agentd reset {0}` first, or `agentd rm {0}`",
                guard.state.name
            );
            return Err(Problem::new(Kind::Conflict, what).next(next));
        }
        let running: Vec<TaskId> = guard.state.tasks.running().map(|(id, _)| *id).collect();
        let fence = guard.fence().await.map_err(|error| of_store(&error))?;
        (fence, running, conversations)
    };
    let mut purged = Purged {
        conversations: conversations.clone(),
        ..Purged::default()
    };
    if ask.dry_run {
        return Ok(purged);
    }
    guard.written_elsewhere();
    // The newest first: an older one may be needed by those that branched off it.
    for id in conversations.into_iter().rev() {
        let done = daemon.store.purge(fence, id, clock::now()).await;
        let done = done.map_err(|error| of_store(&error))?;
        purged.events += done.events;
        purged.blobs += done.blobs;
        let forgotten = daemon.transcripts.forget(desk.id, id).await;
        forgotten.map_err(|error| left(&error))?;
        let removed = files::remove(daemon, desk.id, id, &running).await;
        removed.map_err(|error| left(&error))?;
    }
    drop(guard);
    desk.changed();
    Ok(purged)
}

fn left(error: &std::io::Error) -> Problem {
    let what = "the journal's words are purged, and a file with some of them cannot be removed";
    Problem::new(Kind::Unavailable, what)
        .because(error)
        .next("purge it again when that is mended")
}
