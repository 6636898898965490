//! Conversations: the tree, a single one, and its transcript.

use super::respond::{Answer, Fault, JsonBody, Path, Query};
use crate::daemon::Daemon;
use crate::error::{Error, Kind, Result};
use crate::id_prefix;
use crate::turns;
use crate::view::conversation::{Title, conversation};
use agentd_client::api::{Conversations, OneConversation, Turn, TurnQuery};
use agentd_core::id::{IdPrefix, Seq};
use agentd_core::state::{AgentState, Conversation, Segment};
use agentd_store::ReadQuery;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Events that are read at once.
const PAGE: usize = 1000;
/// Conversations whose titles are looked up, the newest first.
const TITLES: usize = 200;
/// The longest chain of forks that a transcript follows.
const FORKS: usize = 1000;

pub async fn list(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
) -> Answer<Conversations> {
    let handle = daemon.any(&name).await?;
    let state = handle.lock().await.state.clone();
    let tree = &state.tree;
    let mut all: Vec<_> = tree.iter().collect();
    all.sort_by_key(|conversation| conversation.ordinal);
    let without_titles = all.len().saturating_sub(TITLES);
    let mut conversations = Vec::new();
    for (nth, known) in all.into_iter().enumerate() {
        let with = match nth < without_titles {
            true => Title::LeaveOut,
            false => Title::LookUp,
        };
        conversations.push(conversation(&daemon, &state, known, with).await);
    }
    Ok(JsonBody(Conversations {
        current: tree.current(),
        undo: tree.undo_target(),
        redo: tree.redo_target(),
        conversations,
    }))
}

/// Finds a conversation by its ordinal, its id, or the beginning of its id.
fn which<'a>(state: &'a AgentState, which: &str) -> Result<&'a Conversation> {
    let mut all = state.tree.iter();
    let numbered = all.find(|known| known.ordinal.to_string() == which);
    let found = match (numbered, which.parse::<IdPrefix>()) {
        (Some(numbered), _) => Some(numbered),
        (None, Ok(prefix)) => {
            let ids = state.tree.iter().map(|known| known.id);
            let only = id_prefix::only(&prefix, "conversation", ids)?;
            only.and_then(|id| state.tree.get(id))
        }
        (None, Err(_)) => None,
    };
    found.ok_or_else(|| {
        let what = format!("`{}` has no conversation {which}", state.name);
        let next = format!(
            "`agentd conversations {}` lists its conversations",
            state.name
        );
        Error::new(Kind::NotFound, what).next(next)
    })
}

pub async fn show(
    State(daemon): State<Arc<Daemon>>,
    Path((name, asked)): Path<(String, String)>,
) -> Answer<OneConversation> {
    let handle = daemon.any(&name).await?;
    let state = handle.lock().await.state.clone();
    let known = which(&state, &asked)?;
    let mut conversation = conversation(&daemon, &state, known, Title::LookUp).await;
    // Including the labels of the conversations that it branched off.
    conversation.labels = agentd_core::branch_point::labels(&state, conversation.id);
    let ended = turns::ended(&daemon, &state, conversation.id).await?;
    Ok(JsonBody(OneConversation {
        conversation,
        ended,
    }))
}

/// A turn by its number in a conversation, its id, or the beginning of its id.
pub async fn turn(
    State(daemon): State<Arc<Daemon>>,
    Path((name, asked)): Path<(String, String)>,
    Query(query): Query<TurnQuery>,
) -> Answer<Turn> {
    let handle = daemon.any(&name).await?;
    let state = handle.lock().await.state.clone();
    let conversation = query.conversation.or(state.tree.current());
    let found = match conversation {
        Some(conversation) => turns::find(&daemon, &state, conversation, &asked).await?,
        None => None,
    };
    let Some(found) = found else {
        let what = format!("`{}` has no turn {asked}", state.name);
        let next = format!("`agentd show {} --conversation N` lists turns", state.name);
        return Err(Error::new(Kind::NotFound, what).next(next).into());
    };
    Ok(JsonBody(turns::view(&daemon, &state, found).await?))
}

/// Every event that a conversation shows, oldest first: its own, and before them those of the conversations that it
/// branched off, which may be in another agent's journal.
pub async fn transcript(
    State(daemon): State<Arc<Daemon>>,
    Path((name, asked)): Path<(String, String)>,
) -> std::result::Result<Response, Fault> {
    let handle = daemon.any(&name).await?;
    let state = handle.lock().await.state.clone();
    let conversation = which(&state, &asked)?;
    let through = conversation.head;
    let mut lineage = state.tree.lineage(state.id, conversation.id, through);
    let mut segments = lineage.segments;
    for _ in 0..FORKS {
        let Some(origin) = lineage.beyond else { break };
        let parent = daemon.handle(origin.agent).await?;
        let parent = parent.lock().await;
        let tree = &parent.state.tree;
        lineage = tree.lineage(origin.agent, origin.conversation, origin.seq);
        lineage.segments.append(&mut segments);
        segments = std::mem::take(&mut lineage.segments);
    }
    let mut out = Vec::new();
    for segment in segments {
        write(&daemon, segment, &mut out).await?;
    }
    let kind = [(header::CONTENT_TYPE, "application/jsonl")];
    Ok((kind, out).into_response())
}

async fn write(daemon: &Daemon, segment: Segment, out: &mut Vec<u8>) -> Result<()> {
    let mut after = Seq::ZERO;
    loop {
        let query = ReadQuery {
            conversation: Some(segment.conversation),
            ..ReadQuery::all(segment.agent, after, PAGE)
        };
        let page = daemon.store.read(query).await?;
        for event in page.events {
            if event.seq > segment.through {
                return Ok(());
            }
            serde_json::to_writer(&mut *out, &event).map_err(|error| {
                Error::new(Kind::Internal, "an event cannot be written").because(error)
            })?;
            out.push(b'\n');
        }
        match page.next {
            Some(next) => after = next,
            None => return Ok(()),
        }
    }
}
