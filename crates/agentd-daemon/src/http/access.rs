//! Who may ask: the user's own processes; and for what concerns what an agent may do, none of the agents'
//! own tools. That is a guard, not a boundary: tools run as the same user.

use super::respond::Fault;
use agentd_client::{Kind, Problem};
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request};
use axum::middleware::Next;
use axum::response::Response;
use axum::serve::{IncomingStream, Listener};
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

/// Lets people and their programs pass, and tools not.
pub async fn no_tools(
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
    next: Next,
) -> Result<Response, Fault> {
    // One that is gone already may have been anybody.
    let is_tool = match peer.pid {
        Some(pid) => agentd_process::is_in_task(pid).unwrap_or(true),
        None => true,
    };
    if is_tool {
        let what = "an agent's tools may not do that";
        let problem = Problem::new(Kind::Refused, what)
            .because("the request comes from a process that an agent started, or that is gone")
            .next("do it from a terminal of your own");
        return Err(problem.into());
    }
    Ok(next.run(request).await)
}
