//! Connecting to a server. Since revision 2026-07-28 there is no handshake; a server is probed, and an older one is started
//! again with `initialize`.

use super::asking::Asker;
use super::client::Client;
use super::limit::Limited;
use super::opening::{Allowance, Opening};
use super::progress::Progress;
use super::stdio::{self, Process, Program};
use super::{Error, Options, http, short};
use agentd_core::event::McpLifeCycle;
use agentd_core::mcp::Transport;
use rmcp::model::{ErrorCode, ProtocolVersion, SubscriptionFilter};
use rmcp::service::{ClientInitializeError, Peer, RunningService};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long an unknown server may take to answer the probe.
const PROBE: Duration = Duration::from_secs(2);
/// How long the orderly end of a connection may take.
const CLOSE: Duration = Duration::from_millis(500);

/// A server that takes longer than this to begin may have been too slow for the probe.
const SLOW: Duration = Duration::from_secs(1);

/// How often a server may end a subscription to changes.
const MOST_LISTENS: usize = 8;

/// A server that answers.
pub(super) struct Connection {
    pub peer: Peer<RoleClient>,
    pub life_cycle: McpLifeCycle,
    /// What to expect at the next connection.
    pub expected: Expected,
    pub progress: Progress,
    /// The server's list must be looked at: it said that its tools have changed, or it has just been started.
    changed: Arc<AtomicBool>,
    /// A message could not be delivered: the next use needs a new connection.
    broken: AtomicBool,
    service: Mutex<Option<RunningService<RoleClient, Client>>>,
    process: Mutex<Option<Process>>,
    /// How the program ended, once it has: more than one caller wants to know.
    how: Mutex<String>,
}

/// One way to begin, and how long it may take.
type Attempt = (McpLifeCycle, Duration);

/// What is known about how a server begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Expected {
    #[default]
    Unknown,
    LifeCycle(McpLifeCycle),
    /// It understands the handshake, and took this long to begin. It did not answer the probe, perhaps because it was too
    /// slow for it: the next probe waits longer.
    Slow(Duration),
}

/// What worked before comes first. An unknown server is probed briefly; a new server that is slow to start gets a second
/// chance if it does not understand the handshake.
fn attempts(expected: Expected, begin: Duration) -> Vec<Attempt> {
    use McpLifeCycle::{Handshake, Stateless};
    match expected {
        Expected::Unknown => vec![(Stateless, PROBE), (Handshake, begin), (Stateless, begin)],
        Expected::LifeCycle(Handshake) => vec![(Handshake, begin), (Stateless, begin)],
        Expected::LifeCycle(Stateless) => vec![(Stateless, begin), (Handshake, begin)],
        Expected::Slow(took) => {
            let patient = PROBE + took.saturating_mul(3);
            vec![(Stateless, patient.min(begin)), (Handshake, begin)]
        }
    }
}

pub(super) async fn connect(
    transport: &Transport,
    expected: Expected,
    options: &Options,
    asker: &Asker,
) -> Result<Connection, Error> {
    let is_probed = !matches!(expected, Expected::LifeCycle(_));
    let mut last = Error::Closed;
    // The reason that says most about the problem, of all attempts. Of two equal ones that of the handshake, which servers
    // without the newest revision understand.
    let (mut telling, mut most) = (Error::Closed, (0, false));
    for (n, (life_cycle, limit)) in attempts(expected, options.begin).into_iter().enumerate() {
        let begin = Instant::now();
        let error = match attempt(transport, life_cycle, limit, options, asker).await {
            Ok(mut connection) => {
                let was_silent = expected == Expected::Unknown && matches!(last, Error::Silent(_));
                let took = begin.elapsed();
                if was_silent && life_cycle == McpLifeCycle::Handshake && took > SLOW {
                    connection.expected = Expected::Slow(took);
                }
                return Ok(connection);
            }
            Err(error) => error,
        };
        // Some servers exit when they are probed.
        let is_probe = n == 0 && is_probed && !error.is_hopeless();
        if !is_probe && !error.is_misunderstanding() {
            return Err(error);
        }
        let says = (error.tells(), life_cycle == McpLifeCycle::Handshake);
        if says > most {
            (telling, most) = (error.clone(), says);
        }
        last = error;
    }
    Err(telling)
}

async fn attempt(
    transport: &Transport,
    life_cycle: McpLifeCycle,
    limit: Duration,
    options: &Options,
    asker: &Asker,
) -> Result<Connection, Error> {
    // A list from the journal may be that of an earlier version of the server.
    let changed = Arc::new(AtomicBool::new(true));
    let progress = Progress::default();
    let (version, mode) = match life_cycle {
        McpLifeCycle::Stateless => {
            let version = ProtocolVersion::V_2026_07_28;
            let preferred_versions = vec![version.clone()];
            (
                version,
                ClientLifecycleMode::Discover { preferred_versions },
            )
        }
        McpLifeCycle::Handshake => (
            ProtocolVersion::LATEST_WITH_INITIALIZE,
            ClientLifecycleMode::Initialize,
        ),
    };
    let client = Client::new(
        version,
        Arc::clone(&changed),
        progress.clone(),
        asker.clone(),
    );
    let opening = Allowance::default();
    let (process, served) = match transport {
        Transport::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            let program = Program {
                command,
                args,
                env,
                cwd: cwd.as_deref(),
            };
            let (process, stdout, stdin) = stdio::start(&program, options).await?;
            let stdout = Opening::new(stdout, opening.clone());
            let served = client.serve_with_lifecycle(
                Limited::new(AsyncRwTransport::new_client(stdout, stdin)),
                mode,
            );
            (Some(process), tokio::time::timeout(limit, served).await)
        }
        Transport::Http { url, headers } => {
            let served =
                client.serve_with_lifecycle(Limited::new(http::transport(url, headers)?), mode);
            (None, tokio::time::timeout(limit, served).await)
        }
    };
    let error = match served {
        Ok(Ok(service)) => {
            let peer = service.peer().clone();
            opening.lift();
            listen(&peer, life_cycle, &changed);
            return Ok(Connection {
                peer,
                life_cycle,
                expected: Expected::LifeCycle(life_cycle),
                progress,
                changed,
                broken: AtomicBool::new(false),
                service: Mutex::new(Some(service)),
                process: Mutex::new(process),
                how: Mutex::default(),
            });
        }
        Ok(Err(_)) if opening.is_exceeded() => Error::Flood,
        Ok(Err(error)) => refused(&error),
        Err(_) => Error::Silent(limit),
    };
    let how = match process {
        Some(process) => process.end(matches!(error, Error::Ended(_))).await,
        None => String::new(),
    };
    Err(match error {
        Error::Ended(_) => Error::Ended(how),
        other => other,
    })
}

fn refused(error: &ClientInitializeError) -> Error {
    if error.is_authorization_required() || error.auth_challenge().is_some() {
        return Error::OAuth;
    }
    match error {
        ClientInitializeError::ConnectionClosed(_) => Error::Ended(String::new()),
        ClientInitializeError::TransportError { error, .. } => {
            Error::Protocol(format!("the connection failed: {}", short(&causes(error))))
        }
        ClientInitializeError::JsonRpcError(error) => {
            let text = format!("it answered with an error: {}", short(&error.message));
            match error.code {
                // It says only that the server does not know this way to begin.
                ErrorCode::METHOD_NOT_FOUND
                | ErrorCode::INVALID_REQUEST
                | ErrorCode::INVALID_PARAMS
                | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => Error::Misunderstood(text),
                _ => Error::Protocol(text),
            }
        }
        _ => Error::Misunderstood("it does not speak the protocol as expected".to_owned()),
    }
}

/// The innermost reason, which names the problem.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// A server without a handshake tells of changes only to those who listen.
fn listen(peer: &Peer<RoleClient>, life_cycle: McpLifeCycle, changed: &Arc<AtomicBool>) {
    let info = peer.peer_info();
    let tools = info
        .as_ref()
        .and_then(|info| info.capabilities.tools.as_ref());
    let tells = tools.and_then(|tools| tools.list_changed) == Some(true);
    if life_cycle != McpLifeCycle::Stateless || !tells {
        return;
    }
    let (peer, changed) = (peer.clone(), Arc::clone(changed));
    tokio::spawn(async move {
        for _ in 0..MOST_LISTENS {
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            let Ok(mut subscription) = peer.listen(filter).await else {
                return;
            };
            while let Ok(Some(_)) = subscription.next().await {
                changed.store(true, Ordering::Relaxed);
            }
            // The server ended it, or sent more than was read: some changes may be lost.
            changed.store(true, Ordering::Relaxed);
        }
    });
}

impl Connection {
    pub fn is_open(&self) -> bool {
        !self.peer.is_transport_closed() && !self.broken.load(Ordering::Relaxed)
    }

    pub fn mark_broken(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    /// Whether the server said that its tools have changed, since the last call of this.
    pub fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    pub fn mark_changed(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    /// Ends the connection and the whole process tree of the server. Returns how the program ended.
    pub async fn close(&self) -> String {
        let closed_by_it = self.peer.is_transport_closed();
        if let Some(mut service) = self.service.lock().await.take() {
            // It can hang, if the server does not read.
            let _late = service.close_with_timeout(CLOSE).await;
        }
        let mut how = self.how.lock().await;
        if let Some(process) = self.process.lock().await.take() {
            *how = process.end(closed_by_it).await;
        }
        how.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{BEGIN, BEGIN_WATCHED};

    #[test]
    fn a_slow_server_is_probed_again_with_more_patience() {
        let limit_of_probe = |expected: Expected| match attempts(expected, BEGIN)[0] {
            (McpLifeCycle::Stateless, limit) => Some(limit),
            (McpLifeCycle::Handshake, _) => None,
        };
        assert_eq!(limit_of_probe(Expected::Unknown), Some(PROBE));
        let slow = |seconds: u64| Expected::Slow(Duration::from_secs(seconds));
        assert_eq!(limit_of_probe(slow(3)), Some(Duration::from_secs(11)));
        assert_eq!(limit_of_probe(slow(600)), Some(BEGIN));
        let older = Expected::LifeCycle(McpLifeCycle::Handshake);
        assert_eq!(limit_of_probe(older), None);
        let watched = attempts(slow(600), BEGIN_WATCHED);
        assert!(watched.iter().all(|(_, limit)| *limit <= BEGIN_WATCHED));
    }

    /// The last attempt is another way to begin, which the server does not know; that says nothing about its problem.
    #[test]
    fn the_reason_that_says_most_is_kept() {
        let of = |code, message: &str| {
            let error = rmcp::model::ErrorData::new(code, message.to_owned(), None);
            refused(&ClientInitializeError::JsonRpcError(error))
        };
        let expired = of(ErrorCode::INTERNAL_ERROR, "token expired");
        let unknown = of(ErrorCode::METHOD_NOT_FOUND, "Method not found");
        assert!(expired.to_string().contains("token expired"));
        assert!(expired.tells() > unknown.tells());
        assert!(unknown.tells() > Error::Silent(PROBE).tells());
        assert!(Error::Silent(PROBE).tells() > Error::Closed.tells());
        for error in [expired, unknown] {
            assert!(error.is_misunderstanding());
        }
        assert!(!Error::Flood.is_misunderstanding() && Error::Flood.is_hopeless());
    }
}
