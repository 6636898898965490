//! Accepts prompts. A prompt is on disk before it is acknowledged, and a prompt with a key is accepted once.

use crate::clock;
use crate::daemon::{AgentGuard, AgentHandle, Daemon};
use crate::error::{Error, Kind, Result};
use crate::prompt;
use agentd_client::api::{AgentRef, Send, Sent};
use agentd_core::catalog::Asked;
use agentd_core::event::{Body, Mode, PromptRouted};
use agentd_core::id::{AgentId, BindingId, PromptId, Seq};
use agentd_core::message::Block;
use agentd_core::spec::Topic;
use agentd_failpoint as failpoint;
use agentd_store::ReadQuery;

/// How many events, from the one that accepted a prompt, are searched for its text.
const NEAR: usize = 8;

/// Accepts a prompt of the user.
pub async fn send(handle: &AgentHandle, send: Send) -> Result<Sent> {
    if send.notify {
        check_destination(handle).await?;
    }
    let route = Route {
        notify: send.notify,
        binding: None,
    };
    accept(handle, send, route).await
}

/// Who is told how the turn of a prompt ends.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub notify: bool,
    pub binding: Option<BindingId>,
}

/// A notification that could not be sent anywhere would be a promise that is not kept.
async fn check_destination(handle: &AgentHandle) -> Result<()> {
    let settings = &handle.daemon.notify;
    let own = handle.lock().await.state.spec.notify.clone();
    let tells = |name: &str| settings.tells(name, Topic::Completed, &own, Asked::Yes);
    if settings.destinations().any(tells) {
        return Ok(());
    }
    let error = Error::new(Kind::Refused, "no destination of notifications is set");
    Err(error.next(
        "add `desktop = true` or a webhook to [notify] in config.toml, and restart the daemon; see docs/notifications.md",
    ))
}

/// Accepts a prompt.
pub async fn accept(handle: &AgentHandle, send: Send, route: Route) -> Result<Sent> {
    let blocks = prompt::blocks(&send.text, send.attachments).await?;
    // Before the lock: it takes time in proportion to the conversation.
    let window = match prompt::has_attachments(&blocks) {
        true => Some(handle.daemon.store.load(handle.id).await?.window),
        false => None,
    };
    let mut guard = handle.lock().await;
    if let Some(binding) = route.binding {
        check_bound(&guard, binding).await?;
    }
    let known = send
        .key
        .as_ref()
        .and_then(|key| guard.state.inbox.by_key(key));
    if let Some((prompt, seq)) = known {
        // The daemon that accepted it may have died with the caller's keys.
        guard.merge_env(&send.env);
        guard.reconcile();
        let (agent, phase) = (of(handle, &guard), guard.state.phase());
        drop(guard);
        let same = |accepted: &[Block]| accepted == blocks;
        check_same(&handle.daemon, handle.id, (prompt, seq), same, "key").await?;
        handle.daemon.remember(prompt, seq);
        return Ok(Sent {
            agent,
            prompt,
            phase,
            repeated: true,
            seq,
        });
    }
    guard.check_active()?;
    if guard.state.mode == Mode::Oneshot {
        let what = "a one-shot agent takes one prompt";
        let name = &guard.state.name;
        let next = format!(
            "go on with a copy of its conversation: `agentd fork {name} NEW`, then `agentd send NEW PROMPT`"
        );
        return Err(Error::new(Kind::Refused, what).next(next));
    }
    let most = guard.state.spec.limits.max_queue as usize;
    if guard.state.inbox.waiting().len() >= most {
        let what = format!("{most} prompts are queued already (limits.max_queue)");
        let error = Error::new(Kind::QueueFull, what);
        return Err(error.next("send it again when some are answered, or raise the limit"));
    }
    let prompt = PromptId::new(clock::new_id());
    if let Some(window) = window {
        prompt::check_provider(&handle.daemon, &guard.state.spec, &window, &blocks)?;
    }
    let bodies = prompt::bodies(prompt, blocks, send.key, send.mode)?;
    let is_routed = route.notify || route.binding.is_some();
    let routed = is_routed.then_some(PromptRouted {
        prompt,
        notify: route.notify,
        binding: route.binding,
    });
    let bodies = bodies.chain(routed.map(Body::from));
    guard.merge_env(&send.env);
    let events = guard.note(bodies).await?;
    // The prompt is durable before it is acknowledged.
    failpoint::hit("at", "barrier.1");
    let seq = events.first().map(|event| event.seq).unwrap_or_default();
    handle.daemon.remember(prompt, seq);
    guard.reconcile();
    Ok(Sent {
        agent: of(handle, &guard),
        prompt,
        phase: guard.state.phase(),
        repeated: false,
        seq,
    })
}

/// Refuses a message to a binding that has ended. Under the lock of the agent, as is everything that ends a binding: no
/// message is accepted after the event that the binding's last message is about.
async fn check_bound(guard: &AgentGuard<'_>, binding: BindingId) -> Result<()> {
    let bound = guard.handle.daemon.bindings.get(binding).await;
    let Some(bound) = bound else {
        return Err(not_bound("the address"));
    };
    match bound.is_released(&guard.state) {
        true => Err(not_bound(&format!("`{}`", bound.address))),
        false => Ok(()),
    }
}

/// The error of a message to an address that is not bound.
pub fn not_bound(address: &str) -> Error {
    let error = Error::new(
        Kind::NotFound,
        format!("{address} is not bound to an agent"),
    );
    error.next("`agentd bindings` shows all bound addresses")
}

fn of(handle: &AgentHandle, guard: &AgentGuard<'_>) -> AgentRef {
    AgentRef {
        id: handle.id,
        name: Some(guard.state.name.clone()),
    }
}

/// Checks that a prompt that is sent again with its key or op has the same text and attachments as the accepted one.
/// Purged ones are not compared.
pub async fn check_same(
    daemon: &Daemon,
    agent: AgentId,
    (prompt, seq): (PromptId, Seq),
    same: impl Fn(&[Block]) -> bool,
    what: &str,
) -> Result<()> {
    let after = Seq(seq.0.saturating_sub(1));
    let page = daemon
        .store
        .read(ReadQuery::all(agent, after, NEAR))
        .await?;
    let accepted = page.events.iter().find_map(|event| match &event.body {
        Body::Prompt(accepted) if accepted.prompt == prompt => Some(&accepted.blocks),
        _ => None,
    });
    if accepted.is_none_or(|blocks| same(blocks)) {
        return Ok(());
    }
    let error = format!("this {what} was used with another prompt, {prompt}");
    Err(Error::new(Kind::Conflict, error)
        .next(format!("omit it, or use another {what} for each prompt")))
}
