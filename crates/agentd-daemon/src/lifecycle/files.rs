//! What an agent changed in files: shows it, restores files to what they were, and takes a restore back.
//!
//! The decisions are made in [`agentd_core::files`]. A process in the sandbox of the agent's tools reads and writes the
//! files: the daemon itself touches no file of a work tree.

mod after;
mod answer;
mod ask;
mod before_command;
mod begin;
mod carry_out;
mod contents;
pub mod diff;
mod doubt;
mod git;
mod lineage;
pub mod list;
mod names;
mod nothing;
mod prepare;
mod range;
mod reach;
mod resolve;
pub mod restore;
mod sandbox;
mod sides;
mod tasks;
pub mod told;
mod unchanged;
pub mod undo;
mod worker;

pub use carry_out::{adopt_all, carry_on, over as restore_over};
pub use tasks::end_readers;

use super::branch_point;
use crate::daemon::{AgentHandle, Daemon};
use crate::error::{Error, Kind as ErrorKind, Result};
use agentd_client::api::{AgentRef, CannotRestore, NotRestored};
use agentd_core::begin::{INIT, Refused};
use agentd_core::branch_point::first_labelled;
use agentd_core::event::{Event, Kind, Position};
use agentd_core::files::{History, KINDS, Order};
use agentd_core::id::{AgentId, ConversationId, Seq};
use agentd_core::state::AgentState;
use agentd_store::{ReadQuery, Texts};
use lineage::Ancestor;

/// Events that are read at once.
const PAGE: usize = 1000;

/// What a journal tells about files after the end of a turn, although it belongs to the turn.
const LATE: &[Kind] = &[Kind::FilesScanned, Kind::ToolEnded];

/// The history of an agent's files up to an event. That of a fork begins with what it shares.
async fn history(
    handle: &AgentHandle,
    state: &AgentState,
    ancestors: &[Ancestor],
    through: Seq,
) -> Result<History> {
    let daemon = &handle.daemon;
    let mut history = History::default();
    for Ancestor { from, .. } in ancestors.iter().rev() {
        let apply = |history: &mut History, event: &Event| history.apply(event);
        let shared = (from.agent, Seq::ZERO, from.seq);
        read(daemon, &mut history, shared, KINDS, apply).await?;
        if history.is_open() {
            let late = |history: &mut History, event: &Event| history.apply_late(event);
            let after = (from.agent, from.seq, Seq(u64::MAX));
            read(daemon, &mut history, after, LATE, late).await?;
        }
        history.end_inherited(from.agent, from.seq);
    }
    let apply = |history: &mut History, event: &Event| history.apply(event);
    let own = (state.id, Seq::ZERO, through);
    read(daemon, &mut history, own, KINDS, apply).await?;
    history.name_by_changes();
    names::add(handle, state, ancestors, &mut history).await?;
    Ok(history)
}

/// Reads the events of an agent after one up to another, and folds them.
async fn read(
    daemon: &Daemon,
    history: &mut History,
    (agent, mut after, through): (AgentId, Seq, Seq),
    kinds: &'static [Kind],
    apply: impl Fn(&mut History, &Event),
) -> Result<()> {
    loop {
        let query = ReadQuery {
            kinds,
            texts: Texts::WithoutLong,
            ..ReadQuery::all(agent, after, PAGE)
        };
        let page = daemon.store.read(query).await?;
        for event in page.events.iter().filter(|event| event.seq <= through) {
            apply(history, event);
        }
        match page.next {
            Some(next) if next < through => after = next,
            _ => return Ok(()),
        }
    }
}

/// The position of a branch point in the agent's journal, or in one that it shares.
async fn position(
    handle: &AgentHandle,
    state: &AgentState,
    ancestors: &[Ancestor],
    (conversation, called): (Option<ConversationId>, &str),
) -> Result<Position> {
    let own = |seq| Position {
        agent: state.id,
        seq,
    };
    let conversation = conversation.or(state.tree.current());
    let conversation = conversation.ok_or_else(|| Error::from(Refused::NoConversation))?;
    // A rewind gives each branch a label of its own for its beginning. For files, the beginning is that of the first turn.
    if called == INIT
        && let Some(first) = first_labelled(state, conversation, called)
    {
        return Ok(own(first.at));
    }
    match branch_point::find(&handle.daemon, state, conversation, called).await {
        Ok(found) => Ok(own(found.at)),
        Err(error) if error.kind == ErrorKind::NotFound => {
            let shared = lineage::find(handle, ancestors, called).await?;
            shared.ok_or(error)
        }
        Err(error) => Err(error),
    }
}

/// The order of a position in a history. What is not in it is after all of it.
fn order(history: &History, at: Position) -> Order {
    let order = history.order(at);
    order.unwrap_or_else(|| history.own(Seq(u64::MAX)))
}

/// What background commands changed since the last scan, if any have run: no event tells it.
fn of_background(state: &AgentState) -> Option<NotRestored> {
    let background = state.files.background?;
    let why = CannotRestore::Background;
    Some(NotRestored::new(None, Some(background.turn), why))
}

/// The agent as answers name it.
async fn named(handle: &AgentHandle) -> AgentRef {
    let name = handle.lock().await.state.name.clone();
    AgentRef {
        id: handle.id,
        name: Some(name),
    }
}
