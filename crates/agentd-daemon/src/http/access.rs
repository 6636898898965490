//! Which callers may use which routes. Every route declares it: see [`routes`](super::routes).

use super::respond::{self, Fault};
use crate::caller::Caller;
use crate::daemon::Daemon;
use crate::error::{Error, Kind};
use agentd_core::id::{AgentId, IdPrefix};
use agentd_failpoint as failpoint;
use agentd_process::Peer;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{ConnectInfo, RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};

/// Delay before the next attempt after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Which callers may use a route besides the user, who may use every route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Every caller: the route reveals nothing about any agent.
    All,
    /// Hooks, and tools for their own agent.
    Look,
    /// Hooks, and tools for a subagent of their own agent: they may send it a prompt and read the answer.
    Message,
    /// Hooks.
    Order,
    /// Hooks of other agents than the one in the path. An agent waits for its own hooks, so a hook that changed its
    /// agent would wait for itself. If the path has no agent, no hook may use the route.
    Change,
    /// No other callers.
    User,
}

/// Accepts the next connection from a process of the same user. With `tools_of` every caller counts as a tool of that
/// agent.
pub async fn accept(
    daemon: &Daemon,
    listener: &UnixListener,
    tools_of: Option<AgentId>,
) -> (UnixStream, Caller) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "API connection not accepted");
                // tidy: polls until there are descriptors again
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let Ok(peer) = Peer::of(&stream) else {
            continue;
        };
        let is_ours = peer.uid() == rustix::process::getuid().as_raw();
        if is_ours || failpoint::injected_bug("strangers_served") {
            let caller = match tools_of {
                _ if failpoint::injected_bug("callers_trusted") => Caller::User,
                Some(agent) => Caller::Tool { agent: Some(agent) },
                None => Caller::of(&daemon.layout, &peer),
            };
            return (stream, caller);
        }
    }
}

/// Refuses callers that may not use the route.
pub async fn check(
    State((daemon, access)): State<(Arc<Daemon>, Access)>,
    ConnectInfo(caller): ConnectInfo<Caller>,
    path: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Result<Response, Fault> {
    let path = path.map_err(|why| respond::unreadable(why.status(), why.body_text()))?;
    let name = path.iter().find(|(key, _)| *key == "name");
    let about = name.map(|(_, name)| name.to_owned());
    allow(&daemon, access, caller, about.as_deref()).await?;
    Ok(next.run(request).await)
}

async fn allow(
    daemon: &Arc<Daemon>,
    access: Access,
    caller: Caller,
    about: Option<&str>,
) -> Result<(), Error> {
    match (caller, access) {
        (Caller::User, _) | (_, Access::All) => Ok(()),
        (Caller::Hook { .. }, Access::Look | Access::Message | Access::Order) => Ok(()),
        (Caller::Hook { agent }, Access::Change) => match about {
            Some(name) if daemon.find_any(name).await? == agent => {
                let what = format!("a hook of `{name}` may not change `{name}` while it runs");
                Err(Error::new(Kind::Conflict, what).next("do it when the hook has ended"))
            }
            Some(_) => Ok(()),
            None => Err(refused_to_hook()),
        },
        (Caller::Tool { agent: Some(own) }, Access::Look) => match about {
            Some(name) if is(daemon, name, own).await => Ok(()),
            _ => Err(refused()),
        },
        (Caller::Tool { agent: Some(own) }, Access::Message) => match about {
            Some(name) if works_for(daemon, name, own).await => Ok(()),
            _ => Err(refused()),
        },
        (Caller::Hook { .. }, Access::User) => Err(refused_to_hook()),
        (Caller::Tool { .. }, _) => Err(refused()),
        (Caller::Unidentified, _) => {
            let what = "the daemon has too many open files to identify the caller";
            Err(Error::new(Kind::Unavailable, what).next("try again in a moment"))
        }
    }
}

/// Whether an agent is this one. False for an unknown name too, so that a tool does not learn which names exist.
async fn is(daemon: &Arc<Daemon>, name: &str, own: AgentId) -> bool {
    if is_shortened(daemon, name).await {
        return false;
    }
    daemon.find_any(name).await.is_ok_and(|agent| agent == own)
}

/// Whether it is no name, but may be the beginning of an id. A tool that could use one would learn which ids other agents
/// have: whether a beginning names an agent depends on the others.
async fn is_shortened(daemon: &Arc<Daemon>, name: &str) -> bool {
    let prefix = name.parse::<IdPrefix>();
    let may_be = prefix.is_ok_and(|prefix| prefix.whole::<AgentId>().is_none());
    may_be && !matches!(daemon.store.find(name).await, Ok(Some(_)))
}

/// Whether an agent is a subagent of this one.
async fn works_for(daemon: &Arc<Daemon>, name: &str, own: AgentId) -> bool {
    if is_shortened(daemon, name).await {
        return false;
    }
    let Ok(handle) = daemon.named(name).await else {
        return false;
    };
    let guard = handle.lock().await;
    guard
        .state
        .parent_link
        .as_ref()
        .is_some_and(|parent_link| parent_link.parent == own)
}

fn refused_to_hook() -> Error {
    let error = Error::new(Kind::Refused, "a hook may not do that");
    error.next("do it from your own terminal")
}

fn refused() -> Error {
    Error::new(Kind::Refused, "an agent's tools may not do that")
        .because("the request came from a process that an agent started, or that has exited")
        .next("do it from your own terminal")
}
