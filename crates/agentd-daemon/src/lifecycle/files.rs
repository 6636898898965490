//! What an agent changed in files: shows it, restores files to what they were, and takes a restore back.
//!
//! The decisions are made in [`agentd_core::files`]. A process in the sandbox of the agent's tools reads and writes the
//! files: the daemon itself touches no file of a work tree.

mod after;
mod ask;
mod begin;
mod carry_out;
mod contents;
pub mod diff;
mod git;
pub mod list;
mod nothing;
mod prepare;
mod reach;
mod resolve;
pub mod restore;
mod sandbox;
mod unchanged;
pub mod undo;
mod worker;

pub use carry_out::{adopt_all, carry_on, over as restore_over};

use super::branch_point;
use crate::daemon::{AgentHandle, Daemon};
use crate::error::{Error, Result};
use agentd_client::api::AgentRef;
use agentd_core::begin::{INIT, Refused};
use agentd_core::branch_point::first_labelled;
use agentd_core::files::{History, KINDS};
use agentd_core::id::{AgentId, ConversationId, Seq};
use agentd_core::state::AgentState;
use agentd_store::{ReadQuery, Texts};

/// Events that are read at once.
const PAGE: usize = 1000;

/// The history of an agent's files up to an event.
async fn history(daemon: &Daemon, agent: AgentId, through: Seq) -> Result<History> {
    let mut history = History::default();
    let mut after = Seq::ZERO;
    loop {
        let query = ReadQuery {
            kinds: KINDS,
            texts: Texts::WithoutLong,
            ..ReadQuery::all(agent, after, PAGE)
        };
        let page = daemon.store.read(query).await?;
        for event in page.events.iter().filter(|event| event.seq <= through) {
            history.apply(event);
        }
        match page.next {
            Some(next) if next < through => after = next,
            _ => return Ok(history),
        }
    }
}

/// The position of a branch point in the agent's journal.
async fn position(
    handle: &AgentHandle,
    state: &AgentState,
    conversation: Option<ConversationId>,
    called: &str,
) -> Result<Seq> {
    let conversation = conversation.or(state.tree.current());
    let conversation = conversation.ok_or_else(|| Error::from(Refused::NoConversation))?;
    // A rewind gives each branch a label of its own for its beginning. For files, the beginning is that of the first turn.
    if called == INIT
        && let Some(first) = first_labelled(state, conversation, called)
    {
        return Ok(first.at);
    }
    let found = branch_point::find(&handle.daemon, state, conversation, called).await?;
    Ok(found.at)
}

/// The agent as answers name it.
async fn named(handle: &AgentHandle) -> AgentRef {
    let name = handle.lock().await.state.name.clone();
    AgentRef {
        id: handle.id,
        name: Some(name),
    }
}
