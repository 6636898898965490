//! Creates an agent that continues from a branch point of another agent. The other agent does not change. A fork is one
//! append to the new agent's journal, so it exists completely or not at all.

use super::ops::Asked;
use super::resolve_dirs::resolve_dirs;
use super::{branch_point, create, send};
use crate::agent_name;
use crate::clock;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::{Error, Kind, Result};
use crate::hooks::session;
use crate::prompt;
use agentd_client::api::Fork;
use agentd_core::begin::{self, NewFork, Refused};
use agentd_core::branch_point::BranchPoint;
use agentd_core::event::{
    BeginSource, Kind as EventKind, Mode, OpReceipt, OpVerb, Origin, PromptMode,
};
use agentd_core::id::{AgentId, ConversationId, OpId, PromptId};
use agentd_core::message::Block;
use agentd_core::state::AgentState;

/// The result of a fork.
pub struct Made {
    pub agent: AgentId,
    pub from: Origin,
    pub repeated: bool,
    pub prompt: Option<PromptId>,
}

pub async fn fork(parent: &AgentHandle, mut ask: Fork) -> Result<Made> {
    // The agent's id is derived from the op: a repeated request finds the agent.
    let op = ask.op.unwrap_or_else(|| OpId::new(clock::new_id()));
    let id = AgentId::of_op(op);
    let about = (
        (parent.id, &ask.name, &ask.at, ask.conversation),
        (ask.mode, &ask.spec, ask.prompt.is_some()),
    );
    let asked = Asked::new(Some(op), OpVerb::Fork, &about)?;
    let attachments = std::mem::take(&mut ask.attachments);
    let blocks = create::first_prompt(ask.prompt.as_deref(), attachments).await?;
    if ask.op.is_some()
        && let Ok(handle) = parent.daemon.handle(id).await
    {
        return made_before(&handle, &asked, op, blocks.as_deref()).await;
    }
    let name = match &ask.name {
        Some(name) => agent_name::checked(name)?,
        None => create::own_name(id),
    };
    if let Some(spec) = &ask.spec {
        create::check_runnable(&parent.daemon, spec)?;
    }
    let guard = parent.lock().await;
    if ask.prompt.is_some() && guard.state.is_held() {
        return Err(guard.held());
    }
    super::check_generation(&guard, ask.if_generation)?;
    if let Some(spec) = ask.spec.take() {
        let home = guard.env.get("HOME").cloned();
        let spec = resolve_dirs(*spec, Some(&guard.state.spec), home).await;
        ask.spec = Some(Box::new(spec));
    }
    let place = find(&guard, &ask).await?;
    let seen = branch_point::seen(&parent.daemon, &guard.state, place).await?;
    let new = ConversationId::new(clock::new_id());
    let settings = ask.spec.clone().unwrap_or_else(|| guard.state.spec.clone());
    let agent = NewFork {
        name: &name,
        mode: ask.mode.unwrap_or(Mode::Persistent),
        spec: ask.spec.take(),
    };
    let mut lines = begin::fork(&guard.state, &seen, place, agent, new, Some(op))?;
    let prompt = blocks.as_ref().map(|_| PromptId::new(clock::new_id()));
    let receipt = prompt.map_or(OpReceipt::None, |prompt| OpReceipt::Created { prompt });
    lines.extend(asked.with(receipt).map(|body| (new, body)));
    if let (Some(prompt), Some(blocks)) = (prompt, blocks.clone()) {
        prompt::check_provider(&parent.daemon, &settings, &seen, &blocks)?;
        let bodies = prompt::bodies(prompt, blocks, None, PromptMode::Queue)?;
        lines.extend(bodies.map(|body| (new, body)));
    }
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
        drop(guard);
        return made_before(&handle, &asked, op, blocks.as_deref()).await;
    }
    let events = match guard.append(lines).await {
        Ok(events) => events,
        Err(error) => {
            drop(guard);
            parent.daemon.forget(&handle);
            return Err(error);
        }
    };
    let accepted = events
        .iter()
        .find(|event| event.kind() == EventKind::PromptQueued);
    if let (Some(prompt), Some(accepted)) = (prompt, accepted) {
        parent.daemon.remember(prompt, accepted.seq);
    }
    let begun_from = Some(place.conversation);
    session::begins(&mut guard, "fork", begun_from).await;
    guard.reconcile();
    Ok(Made {
        agent: id,
        from,
        repeated: false,
        prompt,
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

async fn made_before(
    handle: &AgentHandle,
    asked: &Asked,
    op: OpId,
    blocks: Option<&[Block]>,
) -> Result<Made> {
    let guard = handle.lock().await;
    let receipt = asked.made(&guard.state)?.cloned();
    let Some(from) = forked_from(&guard.state) else {
        let what = format!("the op `{op}` was already used for an agent that is not a fork");
        return Err(Error::new(Kind::Conflict, what).next("use another op"));
    };
    drop(guard);
    let accepted = receipt.and_then(|made| match made.operation.receipt {
        OpReceipt::Created { prompt } => Some((prompt, made.seq)),
        _ => None,
    });
    if let (Some(accepted), Some(blocks)) = (accepted, blocks) {
        let same = |known: &[Block]| known == blocks;
        send::check_same(&handle.daemon, handle.id, accepted, same, "op").await?;
    }
    Ok(Made {
        agent: handle.id,
        from,
        repeated: true,
        prompt: accepted.map(|(prompt, _)| prompt),
    })
}

/// Where the agent's first conversation comes from; none if the agent is not a fork.
pub fn forked_from(state: &AgentState) -> Option<Origin> {
    let mut all = state.tree.iter();
    let first = all.find(|known| known.source == BeginSource::Fork && known.from.is_some());
    first?.from
}
