//! Applies the retention policy of the user's settings: `[retention]`. Without it nothing is deleted.

mod steady;

use super::ops::Asked;
use super::{archive, purge};
use crate::clock;
use crate::daemon::{AgentHandle, Daemon};
use crate::ending::left;
use crate::error::{Error, Result};
use crate::outbox::trouble::{self, What};
use agentd_client::api::{
    AgentRef, Archive, Prune, Pruned, PrunedAgent, PrunedConversation, Purge,
};
use agentd_core::event::{Mode, OpVerb};
use agentd_core::id::{ConversationId, Seq};
use agentd_core::state::{Conversation, Phase};
use agentd_core::time::Timestamp;
use agentd_failpoint as failpoint;
use agentd_store::{AgentQuery, AgentRow, ReadQuery};
use std::sync::Arc;
use std::time::Duration;
use steady::Steady;

/// How often the policy is applied.
const EVERY: Duration = Duration::from_secs(3600);
/// Lines of the list that are read at once.
const PAGE: usize = 500;

/// Applies the policy from time to time, for as long as the daemon runs. Not at once: right after the boot of a machine its
/// clock may be wrong.
pub async fn watch(daemon: Arc<Daemon>) {
    // Nothing is deleted in a home that may be a copy.
    if daemon.is_read_only() {
        return;
    }
    let mut ending = daemon.ending();
    let mut steady = Steady::new(clock::now(), steady::up());
    // The user is told of the first of several rounds that are skipped.
    let mut is_skipping = false;
    let mut wait = match failpoint::injected_bug("retention_at_once") {
        true => Duration::ZERO,
        false => EVERY,
    };
    loop {
        tokio::select! {
            // tidy: polls nothing; this is the time until the policy is applied again
            () = tokio::time::sleep(wait) => {}
            () = left(&mut ending) => return,
        }
        wait = EVERY;
        match round(&daemon, &mut steady).await {
            Ok(Round::Done(pruned)) => {
                is_skipping = false;
                tell(&pruned);
            }
            Ok(Round::Skipped(why)) => {
                tracing::warn!(why, "retention policy not applied");
                if !std::mem::replace(&mut is_skipping, true) {
                    trouble::add(&daemon, What::RetentionSkipped).await;
                }
            }
            Err(error) => tracing::warn!(%error, "retention policy not applied"),
        }
    }
}

enum Round {
    Done(Pruned),
    /// Nothing was deleted, and why.
    Skipped(&'static str),
}

/// Applies the policy, unless the clock may be wrong: a purge cannot be undone.
async fn round(daemon: &Arc<Daemon>, steady: &mut Steady) -> Result<Round> {
    let now = clock::now();
    // Also without a policy: one may be set before the next round.
    let is_steady = steady.holds(now, steady::up());
    let policy = *daemon.settings().catalog.retention();
    let times = [policy.oneshots_ms, policy.conversations_ms];
    let Some(shorter) = times.into_iter().flatten().min() else {
        return Ok(Round::Done(Pruned::default()));
    };
    if !is_steady {
        return Ok(Round::Skipped("the clock was set forward in the last day"));
    }
    // With a clock that is far ahead, everything is old.
    let last = last_use(daemon).await?;
    if last.is_some_and(|last| unused_ms(daemon, now, last) >= shorter) {
        let why = "no agent was used for as long as the policy says, or the clock is wrong";
        return Ok(Round::Skipped(why));
    }
    prune(daemon, Prune::default()).await.map(Round::Done)
}

/// When an agent of the home was used last; none if there is no agent.
async fn last_use(daemon: &Daemon) -> Result<Option<Timestamp>> {
    let mut last: Option<Timestamp> = None;
    for archived in [false, true] {
        // The most recently used one is the first.
        let query = AgentQuery {
            archived,
            limit: 1,
            ..AgentQuery::default()
        };
        let page = daemon.store.agents(query).await?;
        last = last.max(page.agents.first().map(|row| row.updated_at));
    }
    Ok(last)
}

fn tell(pruned: &Pruned) {
    for agent in &pruned.agents {
        let (id, error) = (agent.agent.id, agent.error.as_deref());
        tracing::info!(agent = %id, error, "one-shot agent pruned by the retention policy");
    }
    for one in &pruned.conversations {
        let (agent, error) = (one.agent.id, one.error.as_deref());
        let conversation = one.conversation;
        tracing::info!(%agent, %conversation, error, "conversation purged by the retention policy");
    }
}

/// Deletes what is older than the policy allows, or only says what that is.
pub async fn prune(daemon: &Arc<Daemon>, ask: Prune) -> Result<Pruned> {
    let policy = *daemon.settings().catalog.retention();
    let now = clock::now();
    let mut pruned = Pruned {
        dry_run: ask.dry_run,
        ..Pruned::default()
    };
    // An agent that cannot be read does not keep the policy from the others.
    if let Some(after) = policy.oneshots_ms {
        for row in rows(daemon, Mode::Oneshot).await? {
            if unused_ms(daemon, now, row.updated_at) < after {
                continue;
            }
            match may_go(daemon, &row).await {
                Ok(true) => pruned.agents.push(oneshot(daemon, &row, ask).await),
                Ok(false) => {}
                Err(error) => tracing::warn!(agent = %row.id, %error, "agent not pruned"),
            }
        }
    }
    if let Some(after) = policy.conversations_ms {
        let rows = rows(daemon, Mode::Persistent).await?;
        for row in rows.iter().filter(|row| row.conversations > 1) {
            match conversations(daemon, row, (now, after), ask).await {
                Ok(done) => pruned.conversations.extend(done),
                Err(error) => tracing::warn!(agent = %row.id, %error, "agent not pruned"),
            }
        }
    }
    Ok(pruned)
}

/// How long something was not used in this home. What came with a backup or a copy counts as used when the home was
/// restored or adopted: otherwise the policy would delete it before the user has seen it.
fn unused_ms(daemon: &Daemon, now: Timestamp, last: Timestamp) -> u64 {
    let adopted = daemon.home.identity.adopted_at;
    now.since(adopted.map_or(last, |adopted| last.max(adopted)))
}

/// The old conversations of an agent. The newest first: an older one may be needed by a newer one that branched off it.
async fn conversations(
    daemon: &Arc<Daemon>,
    row: &AgentRow,
    (now, after): (Timestamp, u64),
    ask: Prune,
) -> Result<Vec<PrunedConversation>> {
    let handle = daemon.handle(row.id).await?;
    let mut done = Vec::new();
    for known in old(&handle, now, after).await?.iter().rev() {
        done.push(conversation(&handle, row, known, ask).await);
    }
    Ok(done)
}

/// The agents. Subagents are left out: they are archived with the agent that started them. Of archived agents only one-shots
/// are among them: the user may restore another one, with its schedules.
async fn rows(daemon: &Daemon, mode: Mode) -> Result<Vec<AgentRow>> {
    let lists: &[bool] = match mode {
        Mode::Oneshot => &[false, true],
        Mode::Persistent => &[false],
    };
    let mut rows = Vec::new();
    for &archived in lists {
        let mut after = None;
        loop {
            let query = AgentQuery {
                mode: Some(mode),
                archived,
                limit: PAGE,
                after,
                ..AgentQuery::default()
            };
            let page = daemon.store.agents(query).await?;
            rows.extend(page.agents.into_iter().filter(|row| row.parent.is_none()));
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
    }
    Ok(rows)
}

/// Whether a one-shot agent has finished, and no fork needs it; an archived one must have content that is left.
async fn may_go(daemon: &Arc<Daemon>, row: &AgentRow) -> Result<bool> {
    let handle = daemon.handle(row.id).await?;
    let left: Vec<ConversationId> = {
        let guard = handle.lock().await;
        let state = &guard.state;
        let is_over = state.turn.is_none() && matches!(state.phase(), Phase::Idle | Phase::Failed);
        if state.is_held() || !(is_over || state.archived) {
            return Ok(false);
        }
        let current = state.tree.current();
        let left = state.tree.iter().filter(|known| !known.purged);
        let mut left: Vec<ConversationId> = left.map(|known| known.id).collect();
        // The current one is refused if nothing else is: the agent is archived first.
        left.sort_by_key(|id| Some(*id) == current);
        left
    };
    if left.is_empty() {
        return Ok(false);
    }
    match daemon.store.would_purge(row.id, left).await {
        Ok(_) | Err(agentd_store::Error::PurgeCurrent { .. }) => Ok(true),
        Err(agentd_store::Error::PurgeNeeded { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

async fn oneshot(daemon: &Arc<Daemon>, row: &AgentRow, ask: Prune) -> PrunedAgent {
    let mut pruned = PrunedAgent {
        agent: named(row),
        archived: !row.archived,
        purged: true,
        error: None,
    };
    if ask.dry_run {
        return pruned;
    }
    let done = async {
        let handle = daemon.handle(row.id).await?;
        let reason = Some("retention policy".to_owned());
        let by_daemon = Asked::by_daemon(OpVerb::Archive);
        archive::archive(&handle, Archive { reason }, &by_daemon).await?;
        let by_daemon = Asked::by_daemon(OpVerb::Purge);
        purge::purge(&handle, Purge::default(), &by_daemon).await?;
        Ok::<_, Error>(())
    };
    if let Err(error) = done.await {
        (pruned.archived, pruned.purged) = (false, false);
        pruned.error = Some(error.to_string());
    }
    pruned
}

/// The conversations that the agent left so long ago, without those that others need: branches and forks continue them.
async fn old(handle: &AgentHandle, now: Timestamp, after: u64) -> Result<Vec<Conversation>> {
    let known: Vec<Conversation> = {
        let guard = handle.lock().await;
        if guard.state.is_held() {
            return Ok(Vec::new());
        }
        let current = guard.state.tree.current();
        let known = guard.state.tree.iter();
        let known = known.filter(|known| !known.purged && Some(known.id) != current);
        known.cloned().collect()
    };
    let mut aged = Vec::new();
    for known in known {
        let last = last_used(handle, &known).await?;
        if unused_ms(&handle.daemon, now, last) >= after {
            aged.push(known);
        }
    }
    let store = &handle.daemon.store;
    loop {
        let ids: Vec<ConversationId> = aged.iter().map(|known| known.id).collect();
        if ids.is_empty() {
            return Ok(aged);
        }
        match store.would_purge(handle.id, ids.clone()).await {
            Ok(_) => return Ok(aged),
            Err(agentd_store::Error::PurgeNeeded { conversation, .. })
                if ids.contains(&conversation) =>
            {
                aged.retain(|known| known.id != conversation);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The time of the conversation's last event.
async fn last_used(handle: &AgentHandle, known: &Conversation) -> Result<Timestamp> {
    let before = Seq(known.head.0.saturating_sub(1));
    let query = ReadQuery::all(handle.id, before, 1);
    let page = handle.daemon.store.read(query).await?;
    Ok(page
        .events
        .first()
        .map_or(known.began_at, |event| event.at.max(known.began_at)))
}

async fn conversation(
    handle: &AgentHandle,
    row: &AgentRow,
    known: &Conversation,
    ask: Prune,
) -> PrunedConversation {
    let mut pruned = PrunedConversation {
        agent: named(row),
        conversation: known.id,
        ordinal: known.ordinal,
        purged: true,
        error: None,
    };
    if ask.dry_run {
        return pruned;
    }
    let purge = Purge {
        conversation: Some(known.id),
        dry_run: false,
    };
    let by_daemon = Asked::by_daemon(OpVerb::Purge);
    // It may be the current one again meanwhile, or another agent may have been forked off it.
    if let Err(error) = purge::purge(handle, purge, &by_daemon).await {
        (pruned.purged, pruned.error) = (false, Some(error.to_string()));
    }
    pruned
}

fn named(row: &AgentRow) -> AgentRef {
    AgentRef {
        id: row.id,
        name: Some(row.name.clone()),
    }
}
