//! Applies the purges that were made after a backup.

use super::Restore;
use super::stopped::OWNER;
use crate::backup::chain::dir_of;
use crate::backup::{Error, Result};
use crate::clock;
use crate::layout::Layout;
use crate::lifecycle;
use crate::purge_log::{self, PurgedConversation};
use crate::spawn::blocking;
use agentd_core::begin::{self, Queue};
use agentd_core::event::{AgentArchived, Body, NewEvent};
use agentd_core::id::ConversationId;
use agentd_store::{Append, Fence, Loaded, Options, SqliteStore, Store};
use std::collections::BTreeSet;

/// The purges in the lists beside the backup, and those of the old home.
pub async fn wanted(ask: &Restore) -> Result<BTreeSet<PurgedConversation>> {
    let (dir, old_home) = (dir_of(&ask.file), ask.old_home.clone());
    blocking(move || {
        let listed = purge_log::read_all(&dir);
        let mut all = listed.map_err(|(file, source)| Error::BadPurges { file, source })?;
        if let Some(home) = old_home {
            let purged = SqliteStore::purged_in(&Options::new(&home));
            let purged = purged.map_err(|source| Error::OldHome {
                home,
                source: Box::new(source),
            })?;
            all.extend(
                purged
                    .into_iter()
                    .map(|(agent, conversation)| PurgedConversation {
                        agent,
                        conversation,
                    }),
            );
        }
        Ok(all)
    })
    .await
}

/// Purges them. A conversation that others branched off is purged after these; so this repeats until nothing is left.
pub async fn apply(
    store: &dyn Store,
    layout: &Layout,
    wanted: BTreeSet<PurgedConversation>,
) -> Result<u64> {
    let mut left = Vec::new();
    for one in wanted {
        if is_there(store, one).await? {
            left.push(one);
        }
    }
    let mut purged = 0;
    while !left.is_empty() {
        let mut refused = Vec::new();
        let mut last = None;
        for one in &left {
            match purge(store, layout, *one).await {
                Ok(()) => purged += 1,
                Err(Error::Store(error @ agentd_store::Error::PurgeNeeded { .. })) => {
                    refused.push(*one);
                    last = Some((*one, error.to_string()));
                }
                Err(error) => return Err(error),
            }
        }
        if let Some((one, why)) = last.filter(|_| refused.len() == left.len()) {
            return Err(Error::NotPurged {
                agent: one.agent,
                conversation: one.conversation,
                why,
            });
        }
        left = refused;
    }
    Ok(purged)
}

/// Whether the backup has the conversation, with its content.
async fn is_there(store: &dyn Store, one: PurgedConversation) -> Result<bool> {
    match store.load(one.agent).await {
        Ok(Loaded { state, .. }) => {
            let known = state.tree.get(one.conversation);
            Ok(known.is_some_and(|known| !known.purged))
        }
        Err(agentd_store::Error::NoSuchAgent { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

async fn purge(store: &dyn Store, layout: &Layout, one: PurgedConversation) -> Result<()> {
    let fence = store.claim(one.agent, OWNER).await?.fence;
    leave(store, fence, one.conversation).await?;
    carry(store, fence, one.conversation).await?;
    store.purge(fence, one.conversation, clock::now()).await?;
    let removed = lifecycle::purge::remove_files(store, layout, one.agent, one.conversation, &[]);
    removed
        .await
        .map_err(Error::io(layout.agent_dir(one.agent)))
}

/// The prompts of schedules do not go with an old conversation: they were recorded again when it was purged, and are here.
async fn carry(store: &dyn Store, fence: Fence, conversation: ConversationId) -> Result<()> {
    let state = store.load(fence.agent).await?.state;
    let Some(current) = state.tree.current() else {
        return Ok(());
    };
    let at = clock::now();
    for bodies in lifecycle::schedule::carried(store, &state, &[conversation]).await? {
        let events = bodies.map(|body| NewEvent {
            at,
            conversation: current,
            turn: None,
            body,
        });
        let append = Append::new(fence, Vec::from(events));
        store.append(append).await?;
    }
    Ok(())
}

/// The current conversation cannot be purged. The agent had left it when it was purged; here it begins a new one. If it is in the
/// middle of a turn, it is archived instead.
async fn leave(store: &dyn Store, fence: Fence, conversation: ConversationId) -> Result<()> {
    let Loaded { state, window, .. } = store.load(fence.agent).await?;
    if state.tree.current() != Some(conversation) || state.archived {
        return Ok(());
    }
    let at = clock::now();
    let new = ConversationId::new(clock::new_id());
    let lines = begin::reset(&state, &window, new, Queue::SetAside, None);
    let lines = match lines {
        Ok(lines) if state.turn.is_none() => lines,
        _ => vec![(conversation, Body::from(AgentArchived {}))],
    };
    let events = lines.into_iter().map(|(conversation, body)| NewEvent {
        at,
        conversation,
        turn: None,
        body,
    });
    let append = Append::new(fence, events.collect());
    store.append(append).await?;
    Ok(())
}
