//! Outside addresses: bound to an agent, removed, listed; and the messages that are posted to them.

use super::send::{Route, accept, not_bound};
use crate::bindings::{Binding, Unusable};
use crate::clock;
use crate::daemon::{AgentGuard, AgentHandle, Daemon};
use crate::error::{Error, Kind, Result};
use crate::outbox::destination_of_binding;
use crate::secrets;
use crate::spawn::blocking;
use agentd_client::api::{self, AgentRef, Bind, BindingMessage, Send, Sent, Unbind};
use agentd_core::catalog::check_url;
use agentd_core::event::{Mode, PromptMode};
use agentd_core::id::{AgentId, BindingId};
use agentd_core::outbox::binding::{check_address, check_sender, prompt_text};
use agentd_core::outbox::webhook::SigningKey;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The longest id of a message. Together with the id of the binding it is the prompt's idempotency key.
const LONGEST_ID: usize = 200;
/// Bindings of one home.
const MOST: usize = 1000;

pub async fn bind(handle: &AgentHandle, ask: Bind) -> Result<api::Binding> {
    let invalid = |why: &dyn std::fmt::Display| {
        Error::new(Kind::Invalid, "the address cannot be bound").because(why)
    };
    check_address(&ask.address).map_err(|why| invalid(&why))?;
    check_url(&ask.webhook).map_err(|why| invalid(&why))?;
    check_secret(&handle.daemon, &ask.secret).await?;
    let daemon = &handle.daemon;
    let before = daemon.bindings.of_address(&ask.address).await;
    let before = before.map_err(cannot)?;
    if let Some(before) = &before
        && before.agent != handle.id
        && !is_over(daemon, before).await?
    {
        return Err(taken(&ask.address));
    }
    // Held until the binding is on disk: the agent does not change in between.
    let guard = handle.lock().await;
    guard.check_active()?;
    guard.check_released()?;
    if guard.state.mode == Mode::Oneshot {
        let what = "a one-shot agent takes one prompt and cannot be bound";
        return Err(Error::new(Kind::Refused, what).next("create a persistent agent"));
    }
    if let Some(bound) = before.clone()
        && bound.agent == handle.id
        && !bound.is_released(&guard.state)
    {
        drop(guard);
        let is_same = bound.url == ask.webhook
            && bound.secret == ask.secret
            && bound.release_on == ask.release_on;
        return match is_same {
            true => Ok(shown(daemon, bound).await),
            false => Err(taken(&ask.address)),
        };
    }
    let new = Binding {
        id: BindingId::new(clock::new_id()),
        address: ask.address,
        agent: handle.id,
        url: ask.webhook,
        secret: ask.secret,
        release_on: ask.release_on,
        bound_at: clock::now(),
        since: guard.state.head,
        unbound: None,
        unbound_at: None,
    };
    let added = daemon.bindings.change(&daemon.layout, |all| {
        let mut newest = all.iter().rev();
        let newest = newest.find(|binding| binding.address == new.address);
        if newest.map(|binding| binding.id) != before.map(|binding| binding.id) {
            return Err(taken(&new.address));
        }
        if all.len() >= MOST {
            let what = format!("{MOST} addresses are bound already, which is the limit");
            return Err(Error::new(Kind::TooLarge, what).next("agentd unbind ADDRESS"));
        }
        all.push(new.clone());
        Ok(())
    });
    let added = added.await.map_err(cannot)?;
    drop(guard);
    added?;
    tracing::info!(address = new.address, agent = %new.agent, "address bound");
    Ok(shown(daemon, new).await)
}

fn taken(address: &str) -> Error {
    let what = format!("`{address}` is bound already");
    Error::new(Kind::Conflict, what).next(format!("agentd unbind {address}"))
}

async fn check_secret(daemon: &Daemon, name: &str) -> Result<()> {
    let layout = daemon.layout.clone();
    let stored = blocking(move || secrets::read(&layout)).await;
    let stored = stored.map_err(|error| {
        Error::new(Kind::Unavailable, "the stored secrets cannot be used").because(error)
    })?;
    let Some(secret) = stored.get(name) else {
        let error = Error::new(Kind::Invalid, format!("no secret `{name}` is stored"));
        return Err(error.next(format!("agentd secret set {name}")));
    };
    SigningKey::parse(&secret.value).map(drop).map_err(|why| {
        let what = format!("the secret `{name}` cannot sign messages");
        Error::new(Kind::Invalid, what).because(why)
    })
}

fn cannot(error: Unusable) -> Error {
    Error::new(Kind::Unavailable, "the list of bindings cannot be used").because(error)
}

/// Whether a binding accepts no more messages.
async fn is_over(daemon: &Arc<Daemon>, binding: &Binding) -> Result<bool> {
    match daemon.existing(binding.agent).await? {
        Some(handle) => Ok(binding.is_released(&handle.lock().await.state)),
        None => Ok(true),
    }
}

pub async fn unbind(daemon: &Arc<Daemon>, address: &str, ask: Unbind) -> Result<api::Binding> {
    let bound = daemon.bindings.of_address(address).await.map_err(cannot)?;
    let Some(mut bound) = bound else {
        return Err(not_bound(&format!("`{address}`")));
    };
    let handle = daemon.existing(bound.agent).await?;
    // Held until the end of the binding is on disk: no message is accepted in between. Those that were accepted before are
    // answered before the last message.
    let guard = match &handle {
        Some(handle) => Some(handle.lock().await),
        None => None,
    };
    let head = guard.as_ref().map_or(bound.since, |guard| guard.state.head);
    let (id, now) = (bound.id, clock::now());
    let changed = daemon.bindings.change(&daemon.layout, |all| {
        if ask.now {
            all.retain(|binding| binding.id != id);
        } else if let Some(binding) = all.iter_mut().find(|binding| binding.id == id) {
            binding.unbound.get_or_insert(head);
            binding.unbound_at.get_or_insert(now);
        }
    });
    changed.await.map_err(cannot)?;
    drop(guard);
    bound.unbound.get_or_insert(head);
    Ok(shown(daemon, bound).await)
}

/// Ends the bindings of an archived agent whose current conversation is purged: it cannot be restored, and never answers again.
/// The webhooks are told.
pub async fn end_all(guard: &AgentGuard<'_>) {
    let (agent, head, now) = (guard.handle.id, guard.state.head, clock::now());
    let daemon = &guard.handle.daemon;
    let changed = daemon.bindings.change(&daemon.layout, |all| {
        let own = all.iter_mut().filter(|binding| binding.agent == agent);
        for binding in own.filter(|binding| !binding.is_released(&guard.state)) {
            binding.unbound = Some(head);
            binding.unbound_at = Some(now);
        }
    });
    if let Err(error) = changed.await {
        tracing::warn!(%agent, %error, "bindings of a purged agent not ended");
    }
}

/// The same for agents that an earlier daemon purged, and died before it ended their bindings.
pub async fn end_purged(daemon: &Arc<Daemon>) {
    // A list that cannot be used was reported when it was loaded.
    let bindings = daemon.bindings.all().await.unwrap_or_default();
    let agents: BTreeSet<AgentId> = bindings.iter().map(|binding| binding.agent).collect();
    for agent in agents {
        match daemon.existing(agent).await {
            Ok(Some(handle)) => {
                let guard = handle.lock().await;
                let current = guard.state.tree.current_conversation();
                if guard.state.archived && current.is_some_and(|it| it.purged) {
                    end_all(&guard).await;
                }
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%agent, %error, "bindings of the agent not checked"),
        }
    }
}

pub async fn list(daemon: &Arc<Daemon>) -> Result<api::Bindings> {
    let mut bindings = Vec::new();
    for binding in daemon.bindings.all().await.map_err(cannot)? {
        bindings.push(shown(daemon, binding).await);
    }
    Ok(api::Bindings { bindings })
}

async fn shown(daemon: &Arc<Daemon>, binding: Binding) -> api::Binding {
    let (name, released, archived) = match daemon.handle(binding.agent).await {
        Ok(handle) => {
            let guard = handle.lock().await;
            let name = guard.state.name.clone();
            let released = binding.is_released(&guard.state);
            (Some(name), released, guard.state.archived)
        }
        Err(_) => (None, true, false),
    };
    let failing = daemon
        .deliveries
        .failing(&destination_of_binding(binding.id));
    api::Binding {
        id: binding.id,
        address: binding.address,
        agent: AgentRef {
            id: binding.agent,
            name,
        },
        webhook: binding.url,
        secret: binding.secret,
        release_on: binding.release_on,
        bound_at: binding.bound_at,
        released,
        archived,
        failed_attempts: failing.as_ref().map_or(0, |failing| failing.attempts),
        error: failing.map(|failing| failing.why),
    }
}

/// Prompts the agent that an address is bound to. A message never answers an approval: it is always a prompt.
pub async fn message(daemon: &Arc<Daemon>, address: &str, message: BindingMessage) -> Result<Sent> {
    if message.id.is_empty() || message.id.len() > LONGEST_ID {
        let what = format!("the id of a message has 1 to {LONGEST_ID} bytes");
        return Err(Error::new(Kind::Invalid, what));
    }
    if let Some(sender) = &message.sender {
        check_sender(sender).map_err(|why| {
            Error::new(Kind::Invalid, "the message cannot be accepted").because(why)
        })?;
    }
    if message.text.trim().is_empty() {
        return Err(Error::new(Kind::Invalid, "the message is empty"));
    }
    let bound = daemon.bindings.of_address(address).await.map_err(cannot)?;
    let Some(bound) = bound else {
        return Err(not_bound(&format!("`{address}`")));
    };
    let handle = daemon.handle(bound.agent).await?;
    let send = Send {
        text: prompt_text(address, message.sender.as_deref(), &message.text),
        // The ids of one sender never meet those of another, or the keys of the user.
        key: Some(format!("{}:{}", bound.id, message.id)),
        mode: PromptMode::Queue,
        ..Send::default()
    };
    let route = Route {
        notify: false,
        binding: Some(bound.id),
    };
    accept(&handle, send, route).await
}

#[cfg(test)]
mod tests;
