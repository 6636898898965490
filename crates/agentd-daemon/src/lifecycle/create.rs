//! Creates an agent, with its first prompt in the same append.

use super::ops::Asked;
use crate::agent_name;
use crate::clock;
use crate::daemon::{AgentHandle, Daemon};
use crate::error::{Error, Kind, Result};
use crate::hooks::session;
use crate::lifecycle::resolve_dirs::resolve_dirs;
use crate::lifecycle::send;
use crate::prompt;
use agentd_client::api::{Create, Env, NewAttachment};
use agentd_core::begin;
use agentd_core::event::{Kind as EventKind, Mode, OpReceipt, OpVerb, PromptMode};
use agentd_core::id::{AgentId, ConversationId, OpId, PromptId};
use agentd_core::message::Block;
use agentd_core::runnable;
use agentd_core::spec::AgentSpec;
use agentd_core::window::Window;
use std::sync::Arc;

pub async fn create(
    daemon: &Arc<Daemon>,
    create: Create,
    op: Option<OpId>,
) -> Result<(AgentId, Option<PromptId>)> {
    let about = (
        &create.name,
        create.mode,
        &create.spec,
        create.prompt.is_some(),
    );
    let asked = Asked::new(op, OpVerb::Create, &about)?;
    let blocks = first_prompt(create.prompt.as_deref(), create.attachments).await?;
    // The agent's id is derived from the op: a repeated request finds the agent.
    let id = op.map_or_else(|| AgentId::new(clock::new_id()), AgentId::of_op);
    if op.is_some()
        && let Ok(handle) = daemon.handle(id).await
    {
        return made_before(&handle, &create.env, blocks.as_deref(), &asked).await;
    }
    let mode = create.mode.unwrap_or(match create.name {
        Some(_) => Mode::Persistent,
        None => Mode::Oneshot,
    });
    let name = match create.name {
        Some(name) => agent_name::checked(&name)?,
        None => own_name(id),
    };
    check_runnable(daemon, &create.spec)?;
    let home = create.env.get("HOME").cloned();
    let spec = resolve_dirs(create.spec, None, home).await;
    let conversation = ConversationId::new(clock::new_id());
    let mut lines = begin::create(&name, mode, &spec, conversation);
    let prompt = blocks.as_ref().map(|_| PromptId::new(clock::new_id()));
    let receipt = prompt.map_or(OpReceipt::None, |prompt| OpReceipt::Created { prompt });
    lines.extend(asked.with(receipt).map(|body| (conversation, body)));
    if let (Some(prompt), Some(blocks)) = (prompt, blocks.clone()) {
        prompt::check_provider(daemon, &spec, &Window::new(), &blocks)?;
        let bodies = prompt::bodies(prompt, blocks, None, PromptMode::Queue)?;
        lines.extend(bodies.map(|body| (conversation, body)));
    }
    daemon.envs.merge(id, &create.env);
    let handle = daemon.new_handle(id).await;
    let mut guard = handle.lock().await;
    if guard.state.tree.current().is_some() {
        drop(guard);
        return made_before(&handle, &create.env, blocks.as_deref(), &asked).await;
    }
    let events = match guard.append(lines).await {
        Ok(events) => events,
        Err(error) => {
            drop(guard);
            daemon.forget(&handle);
            return Err(error);
        }
    };
    let accepted = events
        .iter()
        .find(|event| event.kind() == EventKind::PromptQueued);
    if let (Some(prompt), Some(accepted)) = (prompt, accepted) {
        daemon.remember(prompt, accepted.seq);
    }
    session::begins(&mut guard, "startup", None).await;
    guard.reconcile();
    Ok((id, prompt))
}

/// The agent that this op has created, and its first prompt.
async fn made_before(
    handle: &AgentHandle,
    env: &Env,
    blocks: Option<&[Block]>,
    asked: &Asked,
) -> Result<(AgentId, Option<PromptId>)> {
    let mut guard = handle.lock().await;
    let Some(made) = asked.made(&guard.state)?.cloned() else {
        let op = asked.op().map(|op| op.to_string()).unwrap_or_default();
        let what = format!("the op `{op}` was already used for another agent");
        return Err(Error::new(Kind::Conflict, what).next("use another op"));
    };
    guard.merge_env(env);
    guard.reconcile();
    let prompt = match made.operation.receipt {
        OpReceipt::Created { prompt } => Some(prompt),
        _ => None,
    };
    drop(guard);
    if let (Some(prompt), Some(blocks)) = (prompt, blocks) {
        let same = |accepted: &[Block]| accepted == blocks;
        send::check_same(&handle.daemon, handle.id, (prompt, made.seq), same, "op").await?;
    }
    Ok((handle.id, prompt))
}

/// The blocks of an agent's first prompt, if it has one.
pub async fn first_prompt(
    text: Option<&str>,
    attachments: Vec<NewAttachment>,
) -> Result<Option<Vec<Block>>> {
    match text {
        Some(text) => Ok(Some(prompt::blocks(text, attachments).await?)),
        None if attachments.is_empty() => Ok(None),
        None => {
            let what = "files are attached to a prompt, and there is no prompt";
            Err(Error::new(Kind::Invalid, what).next("add a prompt"))
        }
    }
}

/// The name of an agent that is created without one: `run-` and the end of its id.
pub fn own_name(id: AgentId) -> String {
    let id = id.to_string();
    let end = id.rsplit('-').next().unwrap_or_default();
    format!("run-{end}")
}

pub fn check_spec(spec: &AgentSpec) -> Result<()> {
    let bad = |what: String| Error::new(Kind::Invalid, what);
    spec.validate()
        .map_err(|error| bad("the spec is not valid".to_owned()).because(error))
}

/// An error if an agent with these settings could not run.
pub fn check_runnable(daemon: &Daemon, spec: &AgentSpec) -> Result<()> {
    check_spec(spec)?;
    let known = runnable::check(&daemon.settings().catalog, spec);
    let Err(error) = known else {
        return Ok(());
    };
    // A runtime reads the user's file when it starts: what was added since the daemon read it counts.
    if (daemon.read_catalog()).is_ok_and(|now| runnable::check(&now, spec).is_ok()) {
        return Ok(());
    }
    Err(Error::new(Kind::Invalid, error.what()).because(error))
}
