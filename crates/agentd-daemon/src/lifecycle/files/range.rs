//! Which changes a difference shows: those of a turn, those after a position, or those of a conversation.

use super::lineage::{self, Ancestor};
use super::{order, position};
use crate::daemon::AgentHandle;
use crate::error::{Error, Kind, Result};
use crate::turns;
use agentd_client::api::DiffFiles;
use agentd_core::event::Position;
use agentd_core::files::{Change, History, Order};
use agentd_core::id::{ConversationId, TurnId};
use agentd_core::state::AgentState;

pub enum Range {
    Turn(TurnId),
    Since(Order),
    /// A conversation with what it branched off, each up to its last event that counts.
    Lineage(Vec<(ConversationId, Order)>),
}

impl Range {
    pub async fn of(
        handle: &AgentHandle,
        (state, ancestors): (&AgentState, &[Ancestor]),
        history: &History,
        ask: &DiffFiles,
    ) -> Result<Self> {
        let conversation = ask.conversation.or(state.tree.current());
        let Some(conversation) = conversation else {
            return Ok(Self::Lineage(Vec::new()));
        };
        if let Some(called) = &ask.turn {
            let own = turns::find(&handle.daemon, state, conversation, called).await?;
            let found = match own {
                Some(turn) => Some(turn.id),
                None => {
                    let shared = lineage::turn(handle, ancestors, called).await?;
                    shared.map(|(turn, _)| turn)
                }
            };
            return found.map(Self::Turn).ok_or_else(|| {
                let what = format!("`{}` has no turn {called}", state.name);
                let next = format!("`agentd show {} --conversation N` lists turns", state.name);
                Error::new(Kind::NotFound, what).next(next)
            });
        }
        if let Some(called) = &ask.since {
            let place = (Some(conversation), called.as_str());
            let since = position(handle, state, ancestors, place).await?;
            return Ok(Self::Since(order(history, since)));
        }
        if state.tree.get(conversation).is_none() {
            let what = format!("`{}` has no conversation {conversation}", state.name);
            return Err(Error::new(Kind::NotFound, what));
        }
        let segments = lineage::segments(state, conversation, ancestors).into_iter();
        let segments = segments.map(|segment| {
            let (agent, seq) = (segment.agent, segment.through);
            let through = order(history, Position { agent, seq });
            (segment.conversation, through)
        });
        Ok(Self::Lineage(segments.collect()))
    }

    pub fn has(&self, change: &Change) -> bool {
        self.has_at(change.order, change.turn, Some(change.conversation))
    }

    /// Without a conversation it is not known in which one it was.
    pub fn has_at(
        &self,
        order: Order,
        turn: Option<TurnId>,
        conversation: Option<ConversationId>,
    ) -> bool {
        match self {
            Self::Turn(wanted) => turn == Some(*wanted),
            Self::Since(after) => order > *after,
            Self::Lineage(segments) => segments.iter().any(|(known, through)| {
                let is_here = conversation.is_none_or(|it| it == *known);
                is_here && order <= *through
            }),
        }
    }
}
