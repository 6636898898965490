//! Creates an agent that continues from a branch point of another agent. The other agent does not change. A fork is one
//! append to the new agent's journal, so it exists completely or not at all.

use super::branch_point;
use super::ops::Asked;
use crate::agent_name;
use crate::clock;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::{Error, Kind, Result};
use crate::hooks::session;
use agentd_client::api::Fork;
use agentd_core::begin::{self, Refused};
use agentd_core::branch_point::BranchPoint;
use agentd_core::event::{BeginSource, OpVerb, Origin};
use agentd_core::id::{AgentId, ConversationId, OpId};
use agentd_core::state::AgentState;

/// The result of a fork.
pub struct Made {
    pub agent: AgentId,
    pub from: Origin,
    pub repeated: bool,
}

pub async fn fork(parent: &AgentHandle, ask: Fork) -> Result<Made> {
    // The agent's id is derived from the op: a repeated request finds the agent.
    let op = ask.op.unwrap_or_else(|| OpId::new(clock::new_id()));
    let id = AgentId::of_op(op);
    let about = (parent.id, &ask.name, &ask.at, ask.conversation);
    let asked = Asked::new(Some(op), OpVerb::Fork, &about)?;
    if ask.op.is_some()
        && let Ok(handle) = parent.daemon.handle(id).await
    {
        return made_before(&handle.lock().await.state, &asked, op);
    }
    let name = agent_name::checked(&ask.name)?;
    let guard = parent.lock().await;
    super::check_generation(&guard, ask.if_generation)?;
    let place = find(&guard, &ask).await?;
    let seen = branch_point::seen(&parent.daemon, &guard.state, place).await?;
    let new = ConversationId::new(clock::new_id());
    let lines = begin::fork(&guard.state, &seen, place, &name, new, Some(op));
    let mut lines = lines?;
    lines.extend(asked.line().map(|body| (new, body)));
    let from = Origin {
        agent: parent.id,
        conversation: place.conversation,
        seq: place.at,
    };
    match ask.env.is_empty() {
        true => parent
            .daemon
            .envs
            .merge(id, &parent.daemon.envs.brought(guard.state.id)),
        false => parent.daemon.envs.merge(id, &ask.env),
    };
    // The parent can be unlocked: its events never change.
    drop(guard);
    let handle = parent.daemon.new_handle(id).await;
    let mut guard = handle.lock().await;
    if guard.state.tree.current().is_some() {
        return made_before(&guard.state, &asked, op);
    }
    if let Err(error) = guard.append(lines).await {
        drop(guard);
        parent.daemon.forget(&handle);
        return Err(error);
    }
    let begun_from = Some(place.conversation);
    session::begins(&mut guard, "fork", begun_from).await;
    guard.reconcile();
    Ok(Made {
        agent: id,
        from,
        repeated: false,
    })
}

async fn find(parent: &AgentGuard<'_>, ask: &Fork) -> Result<BranchPoint> {
    let state = &parent.state;
    let conversation = ask.conversation.or(state.tree.current());
    let conversation = conversation.ok_or_else(|| Error::from(Refused::NoConversation))?;
    match &ask.at {
        Some(called) => {
            branch_point::find(&parent.handle.daemon, state, conversation, called).await
        }
        None => {
            let known = state.tree.get(conversation);
            let refused = || Error::from(Refused::NoSuchConversation(conversation));
            let at = known.ok_or_else(refused)?.head;
            Ok(BranchPoint { conversation, at })
        }
    }
}

fn made_before(state: &AgentState, asked: &Asked, op: OpId) -> Result<Made> {
    asked.is_made(state)?;
    let mut all = state.tree.iter();
    let first = all.find(|known| known.source == BeginSource::Fork && known.from.is_some());
    match first.and_then(|first| first.from) {
        Some(from) => Ok(Made {
            agent: state.id,
            from,
            repeated: true,
        }),
        None => {
            let what = format!("the op `{op}` was already used for an agent that is not a fork");
            Err(Error::new(Kind::Conflict, what).next("use another op"))
        }
    }
}
