//! Deletes the content of one conversation, or of all conversations of an archived agent, permanently.

mod delete;
mod files;
mod sessions;

pub use files::remove as remove_files;

use super::ops::Asked;
use super::stretch;
use crate::clock;
use crate::daemon::AgentHandle;
use crate::error::{Error, Kind, Result};
use crate::purge_log;
use agentd_client::api::{Purge, Purged};
use agentd_core::event::{Body, OpReceipt};
use agentd_core::id::{ConversationId, TaskId};
use agentd_failpoint as failpoint;
use sessions::Sessions;

pub async fn purge(handle: &AgentHandle, ask: Purge, asked: &Asked) -> Result<Purged> {
    let _one_at_a_time = match ask.dry_run {
        true => None,
        false => Some(handle.purging.lock().await),
    };
    // Locked until the text is deleted, so that no decision is made from text that is being deleted.
    let mut guard = handle.lock().await;
    let made = asked.made(&guard.state)?.cloned();
    let (fence, running, conversations) = {
        let tree = &guard.state.tree;
        let before = made.as_ref().map(|made| &made.operation.receipt);
        let conversations: Vec<ConversationId> = match (before, ask.conversation) {
            (Some(OpReceipt::Purge { conversations }), _) => conversations.clone(),
            (_, Some(id)) => vec![id],
            _ => {
                let left = tree.iter().filter(|it| !it.purged);
                left.map(|conversation| conversation.id).collect()
            }
        };
        for id in &conversations {
            if tree.get(*id).is_none() {
                let what = format!("`{}` has no conversation {id}", guard.state.name);
                return Err(Error::new(Kind::NotFound, what));
            }
        }
        let current = tree.current().filter(|it| conversations.contains(it));
        if current.is_some() && !guard.state.archived {
            let what = "the current conversation cannot be purged";
            let next = format!(
                "`agentd reset {0}` first, or `agentd rm {0}`",
                guard.state.name
            );
            return Err(Error::new(Kind::Conflict, what).next(next));
        }
        let running: Vec<TaskId> = guard.state.tasks.running().map(|(id, _)| *id).collect();
        let fence = guard.fence().await?;
        (fence, running, conversations)
    };
    let mut purged = Purged {
        conversations: conversations.clone(),
        ..Purged::default()
    };
    let spec = &guard.state.spec;
    let sessions = Sessions::of(&handle.daemon, handle.id, spec, &conversations).await;
    if ask.dry_run {
        purged.left = sessions.left();
        let would_go = handle
            .daemon
            .store
            .would_purge(handle.id, conversations)
            .await?;
        (purged.events, purged.blobs) = (would_go.events, would_go.blobs);
        return Ok(purged);
    }
    // The op is recorded before the first deletion: a repeated request purges the rest.
    let began = match &made {
        Some(made) => Some(made.seq),
        None => {
            let receipt = OpReceipt::Purge {
                conversations: conversations.clone(),
            };
            let events = guard.note(asked.with(receipt)).await?;
            events.first().map(|event| event.seq)
        }
    };
    // The prompts of schedules are settings of the agent: they do not go with an old conversation.
    super::schedule::carry(&mut guard, &purged.conversations).await?;
    let tree = guard.state.tree.iter();
    let gone: Vec<ConversationId> = tree.filter(|it| it.purged).map(|it| it.id).collect();
    let gone = if made.is_some() { gone } else { Vec::new() };
    let current = guard.state.tree.current_conversation();
    let mut is_current_gone = current.is_some_and(|it| it.purged);
    let current = current.map(|it| it.id);
    guard.written_elsewhere();
    // The newest first: a conversation cannot be purged while a newer one that branched off it needs it.
    // A repeated request may find some of them purged already.
    let daemon = &handle.daemon;
    let mut refused = None;
    for id in conversations.iter().rev().filter(|id| !gone.contains(id)) {
        match daemon.store.purge(fence, *id, clock::now()).await {
            Ok(done) => {
                purged.events += done.events;
                purged.blobs += done.blobs;
                is_current_gone |= current == Some(*id);
            }
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    // Not before: if the purge is refused, the agent can be restored, and its bindings accept messages again.
    failpoint::hit("before", "purge_bindings");
    // If this process dies, the next one ends them.
    if is_current_gone {
        super::bind::end_all(&guard).await;
    }
    failpoint::hit("before", "purge_lists");
    // Not under the lock: other conversations go on while disks and the program are asked. Nothing but a purge uses the
    // files of these conversations any more.
    let scene = delete::Scene::of(&guard);
    drop(guard);
    // Backups that were made before still have the content: a restore must know of the purge. If this process dies, the next
    // one writes the lists.
    purge_log::update(&daemon.store, &daemon.layout, daemon.home.identity.id).await;
    if let Some(error) = refused {
        return Err(error.into());
    }
    delete::delete(daemon, scene, &sessions, &mut purged).await;
    let guard = handle.lock().await;
    for id in conversations.into_iter().rev() {
        let forgotten = handle.daemon.transcripts.forget(handle.id, id).await;
        forgotten.map_err(|error| left(&error))?;
        let removed = files::remove(&*daemon.store, &daemon.layout, handle.id, id, &running).await;
        removed.map_err(|error| left(&error))?;
    }
    let is_gone = guard.state.archived && ask.conversation.is_none();
    let removed = match is_gone && running.is_empty() {
        true => files::remove_all(&handle.daemon, handle.id).await,
        false => files::remove_empty(&handle.daemon, handle.id).await,
    };
    removed.map_err(|error| left(&error))?;
    drop(guard);
    handle.changed();
    if let Some(began) = began {
        let head = handle.lock().await.state.head;
        let events = stretch(&handle.daemon, handle.id, (began, head)).await?;
        let counts = events.iter().filter_map(|event| match &event.body {
            Body::Purged(done)
                if done.files.is_none() && purged.conversations.contains(&done.conversation) =>
            {
                Some(done.events)
            }
            _ => None,
        });
        purged.events = counts.sum();
    }
    Ok(purged)
}

fn left(error: &std::io::Error) -> Error {
    let what = "the journal's text is purged, but a file with some of it cannot be removed";
    Error::new(Kind::Unavailable, what)
        .because(error)
        .next("purge it again when that is fixed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::archive::archive;
    use crate::spawn::spawn;
    use crate::supervisor::tests::bed;
    use agentd_client::api::Archive;
    use agentd_core::event::OpVerb;
    use std::fs;

    /// Regression: the agent was locked for as long as the disk of its backups did not answer.
    #[tokio::test]
    async fn an_agent_is_not_locked_while_the_disk_of_its_backups_does_not_answer() {
        let (bed, dir) = (bed(), tempfile::tempdir().unwrap());
        let (daemon, home) = (&bed.daemon, bed.daemon.home.identity.id);
        let handle = bed.agent(None).await;
        let by_daemon = Asked::by_daemon(OpVerb::Archive);
        archive(&handle, Archive::default(), &by_daemon)
            .await
            .unwrap();
        purge_log::remember(&daemon.layout, dir.path())
            .await
            .unwrap();
        let hangs = purge_log::lock(dir.path()).await;
        let mut commits = daemon.store.commits();
        let other = daemon.handle(handle.id).await.unwrap();
        let purging = spawn("test", async move {
            let by_daemon = Asked::by_daemon(OpVerb::Purge);
            purge(&other, Purge::default(), &by_daemon).await
        });
        while daemon
            .store
            .purged_conversations()
            .await
            .unwrap()
            .is_empty()
        {
            assert!(commits.next().await);
        }
        let locked = tokio::time::timeout(purge_log::PATIENCE / 2, handle.lock()).await;
        assert!(locked.is_ok());
        drop(locked);
        drop(hangs);
        purging.await.unwrap().unwrap().unwrap();
        drop(purge_log::lock(dir.path()).await);
        let list = fs::read_to_string(purge_log::file(dir.path(), home)).unwrap();
        assert!(list.contains(&handle.id.to_string()), "{list}");
    }
}
