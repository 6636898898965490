//! Who may ask: the user's own processes; and for what concerns what an agent may do, none of the agents'
//! own tools. That is a guard, not a boundary: tools run as the same user.

use super::respond::Fault;
use crate::daemon::Daemon;
use crate::hooks::run;
use agentd_client::{Kind, Problem};
use agentd_core::id::AgentId;
use agentd_process::Around;
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use axum::serve::{IncomingStream, Listener};
use std::sync::Arc;
use tokio::net::{UnixListener, UnixStream};

/// Whoever is at the other end.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pid: Option<u32>,
}

/// Only the user's own processes.
pub struct Own(pub UnixListener);

impl Listener for Own {
    type Io = UnixStream;
    type Addr = Peer;

    async fn accept(&mut self) -> (UnixStream, Peer) {
        loop {
            let (stream, _) = Listener::accept(&mut self.0).await;
            let Ok(peer) = stream.peer_cred() else {
                continue;
            };
            if peer.uid() == rustix::process::getuid().as_raw() {
                let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
                return (stream, Peer { pid });
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Peer> {
        let pid = Some(std::process::id());
        Ok(Peer { pid })
    }
}

impl Connected<IncomingStream<'_, Own>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Own>) -> Self {
        *stream.remote_addr()
    }
}

/// Lets people and their programs pass, and tools not. A hook passes, but not to its own agent: whoever told
/// it something waits for it.
pub async fn no_tools(
    State(daemon): State<Arc<Daemon>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    path: RawPathParams,
    request: Request,
    next: Next,
) -> Result<Response, Fault> {
    let name = path.iter().find(|(key, _)| *key == "name");
    let name = name.map(|(_, name)| name.to_owned());
    match (who(&daemon, peer), name) {
        (Who::Person, _) => {}
        (Who::Hook(own), Some(name)) => {
            let asked = daemon.find_any(&name).await?;
            if asked == own {
                let what = format!("a hook of `{name}` runs, and asks this of `{name}` itself");
                let problem = Problem::new(Kind::Conflict, what);
                return Err(problem.next("do it when the hook has ended").into());
            }
        }
        (Who::Tool, _) | (Who::Hook(_), None) => {
            let what = "an agent's tools may not do that";
            let problem = Problem::new(Kind::Refused, what)
                .because("the request comes from a process that an agent started, or that is gone")
                .next("do it from a terminal of your own");
            return Err(problem.into());
        }
    }
    Ok(next.run(request).await)
}

enum Who {
    Person,
    Tool,
    /// One of this agent's hooks, or whatever that started.
    Hook(AgentId),
}

fn who(daemon: &Daemon, peer: Peer) -> Who {
    // One that is gone already may have been anybody.
    let around = peer.pid.map(agentd_process::task_around);
    match around {
        Some(Ok(Around::None)) => Who::Person,
        Some(Ok(Around::Task(folder))) if folder.starts_with(daemon.layout.hooks()) => {
            run::owner(&folder).map_or(Who::Tool, Who::Hook)
        }
        _ => Who::Tool,
    }
}
