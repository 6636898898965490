//! Serves the connections of a socket, with limits on their number and on the time for the head of a request to arrive.

use super::share::Share;
use super::{access, router};
use crate::caller::Caller;
use crate::daemon::Daemon;
use crate::ending::left;
use crate::spawn::spawn;
use agentd_core::id::AgentId;
use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The limit of connections to the daemon's own socket, without those that have become streams.
const CONNECTIONS: u32 = 512;
/// The limit of open streams on it.
const STREAMS: u32 = 1024;
/// How many of them may come from hooks and from tools without a sandbox. The rest is for the user.
const FROM_PROGRAMS: usize = 128;
/// The limit of connections to the socket of one agent's tools, and of streams on it.
const FROM_TOOLS: u32 = 16;
/// Time limit for the head of a request, from the start of its connection.
const HEAD: Duration = Duration::from_secs(10);
/// Time limit for open streams to end when the daemon ends.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The connection limits of one socket. Kept outside the server, so that a restarted server continues with the same
/// counts.
#[derive(Clone)]
pub struct Room {
    all: Arc<Semaphore>,
    limit: u32,
    streams: Arc<Semaphore>,
    stream_limit: u32,
    programs: Arc<Semaphore>,
}

impl Room {
    fn new(limit: u32, stream_limit: u32) -> Self {
        Self {
            all: Arc::new(Semaphore::new(limit as usize)),
            limit,
            streams: Arc::new(Semaphore::new(stream_limit as usize)),
            stream_limit,
            programs: Arc::new(Semaphore::new(FROM_PROGRAMS)),
        }
    }

    pub fn of_daemon() -> Self {
        Self::new(CONNECTIONS, STREAMS)
    }

    pub fn of_tools() -> Self {
        Self::new(FROM_TOOLS, FROM_TOOLS)
    }

    /// Waits until one more connection is allowed. Meanwhile new connections wait in the socket's own queue.
    async fn next(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.all).try_acquire_owned() {
            return Some(permit);
        }
        tracing::warn!(
            limit = self.limit,
            "API connection limit reached: new connections wait"
        );
        Arc::clone(&self.all).acquire_owned().await.ok()
    }
}

/// Serves the clients of a socket. With `tools_of`, all of them are tools of that agent.
pub async fn serve(
    daemon: Arc<Daemon>,
    listener: Arc<UnixListener>,
    tools_of: Option<AgentId>,
    room: Room,
) {
    let mut ending = daemon.ending();
    let app = router(Arc::clone(&daemon));
    loop {
        let next = async {
            let permit = room.next().await;
            let (stream, caller) = access::accept(&daemon, &listener, tools_of).await;
            (permit, stream, caller)
        };
        let (permit, stream, caller) = tokio::select! {
            next = next => next,
            () = left(&mut ending) => break,
        };
        let of_programs = match caller {
            Caller::User => None,
            _ if tools_of.is_some() => None,
            Caller::Tool { .. } | Caller::Hook { .. } | Caller::Unidentified => {
                let Ok(permit) = Arc::clone(&room.programs).try_acquire_owned() else {
                    tracing::warn!(
                        limit = FROM_PROGRAMS,
                        "API connection of a tool or hook closed: limit reached"
                    );
                    continue;
                };
                Some(permit)
            }
        };
        let (daemon, app) = (Arc::clone(&daemon), app.clone());
        let share = Share::new(permit, Arc::clone(&room.streams));
        spawn("API connection", async move {
            converse(&daemon, app, stream, caller, share).await;
            drop(of_programs);
        });
    }
    // The open connections are shutting down: wait for them for a moment.
    let all = room.all.acquire_many(room.limit);
    let streams = room.streams.acquire_many(room.stream_limit);
    let both = async { (all.await, streams.await) };
    let _late = tokio::time::timeout(LAST_WORDS, both).await;
}

async fn converse(daemon: &Daemon, app: Router, stream: UnixStream, caller: Caller, share: Share) {
    let app = TowerToHyperService::new(app);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(caller));
        request.extensions_mut().insert(share.clone());
        app.call(request)
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let mut connection = pin!(server.serve_connection(TokioIo::new(stream), service));
    let mut ending = daemon.ending();
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = left(&mut ending) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended
        && error.is_timeout()
    {
        tracing::warn!(
            limit_s = HEAD.as_secs(),
            caller = caller.kind(),
            "API connection closed: no request in time"
        );
    }
}
