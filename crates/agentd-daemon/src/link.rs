//! The daemon's side of the link: runtimes connect, and reconnect when the connection breaks.

mod drafts;
mod hello;
mod questions;
mod turn_log;

pub use hello::Room;

use crate::daemon::{AgentGuard, AgentHandle, Connection, Daemon, Live};
use crate::ending::left;
use crate::http;
use crate::lifecycle;
use crate::spawn::{blocking, caught, spawn};
use agentd_core::event::{Event, Kind, NewEvent};
use agentd_core::id::{Incarnation, Seq};
use agentd_core::link::{
    Append, Down, Greeting, Hello, MAX_FRAME, Order, Refusal, Up, Welcome, is_a_runtimes,
    without_files,
};
use agentd_failpoint as failpoint;
use agentd_process::Identity;
use agentd_store::ReadQuery;
use futures_util::{SinkExt as _, StreamExt as _};
use hello::Places;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead, FramedWrite};
use turn_log::{log_turns, turns_in};

/// How many events are read at a time for a runtime that missed them.
/// A page may have contents of files, which are not sent.
const PAGE: usize = 100;
/// The delay of an injected bug, which handles a frame after its connection has broken.
const LATE: std::time::Duration = std::time::Duration::from_millis(1500);

type Reader = FramedRead<OwnedReadHalf, AnyDelimiterCodec>;

/// One connection, as the tasks that answer the runtime's questions see it.
#[derive(Clone)]
struct Side {
    down: mpsc::UnboundedSender<Down>,
    /// Closes the connection if a task panics and can no longer answer: the runtime asks again on its next connection.
    broke: mpsc::UnboundedSender<()>,
}

impl Side {
    /// Answers a question in a task of its own, while the connection continues.
    fn spawn(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let broke = self.broke.clone();
        spawn(name, async move {
            if caught(name, work).await.is_err() {
                let _over = broke.send(());
            }
        });
    }
}

pub async fn serve(daemon: Arc<Daemon>, listener: Arc<UnixListener>, room: Room) {
    let mut ending = daemon.ending();
    loop {
        let next = async {
            let places = room.next().await;
            (places, listener.accept().await)
        };
        let (places, accepted) = tokio::select! {
            next = next => next,
            () = left(&mut ending) => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let daemon = Arc::clone(&daemon);
                drop(spawn("link", converse(daemon, stream, places)));
            }
            Err(error) => {
                tracing::warn!(%error, "link connection not accepted");
                // tidy: polls until there are descriptors again
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

fn codec() -> AnyDelimiterCodec {
    AnyDelimiterCodec::new_with_max_length(vec![0], vec![0], MAX_FRAME)
}

async fn converse(daemon: Arc<Daemon>, stream: UnixStream, places: Places) {
    static CONNECTIONS: AtomicU64 = AtomicU64::new(1);
    let peer = stream.peer_cred().ok();
    let is_stranger = peer.is_none_or(|peer| peer.uid() != rustix::process::getuid().as_raw());
    if is_stranger && !failpoint::injected_bug("strangers_served") {
        return;
    }
    let pid = peer.and_then(|peer| u32::try_from(peer.pid()?).ok());
    let peer = pid.and_then(|pid| Identity::of(pid).ok());
    let (read, write) = stream.into_split();
    let Some((hello, mut reader, _place)) = hello::read(read, pid, places).await else {
        return;
    };
    let (down, mut said) = mpsc::unbounded_channel::<Down>();
    spawn("link writer", async move {
        let mut writer = FramedWrite::new(write, codec());
        while let Some(down) = said.recv().await {
            let Ok(text) = serde_json::to_string(&down) else {
                return;
            };
            failpoint::hit_of("before", "send", down.name());
            if writer.send(text).await.is_err() {
                return;
            }
            failpoint::hit_of("after", "send", down.name());
        }
    });
    let Ok(handle) = daemon.handle(hello.agent).await else {
        let why = Refusal::NoSuchAgent;
        let _gone = down.send(Down::Refused { why });
        return;
    };
    let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    let (open, mut closed) = oneshot::channel();
    let connection = Connection {
        number,
        down: down.clone(),
        _open: open,
        holds_turns: false,
    };
    let (broke, mut broken) = mpsc::unbounded_channel();
    let side = Side { down, broke };
    let talk = async {
        let greeted = greet(&handle, &hello, connection, peer).await;
        let Some(incarnation) = greeted else { return };
        loop {
            let up = tokio::select! {
                up = next(&mut reader) => up,
                _ = &mut closed => return,
                // The writer has ended, or a task that was to answer the runtime has panicked.
                () = side.down.closed() => return,
                _ = broken.recv() => return,
            };
            let Some(up) = up else { return };
            let went_well = match up {
                Up::Append(append) => take(&handle, append, &side.down).await,
                Up::Draft(draft) => drafts::keep(&handle, draft, &side.down).await,
                Up::Ask(asked) => questions::answer(&handle, asked, &side).await,
                Up::InvokeHooks(invocation) => {
                    questions::invoke_hooks(&handle, incarnation, *invocation, &side).await
                }
                Up::Keys(keys) => {
                    handle.lock().await.keys = keys.values;
                    true
                }
                Up::Progress(progress) => {
                    handle.show(Live::Progress(progress));
                    true
                }
                Up::Hello(_) => false,
            };
            if !went_well {
                return;
            }
        }
    };
    // A panic is caught, so that the connection is closed below in any case, and the runtime reconnects.
    let _logged = caught("link", talk).await;
    let mut guard = handle.lock().await;
    if guard.down.take_if(|it| it.number == number).is_some() {
        guard.link.disconnected();
        guard.changed();
    }
}

async fn next(reader: &mut Reader) -> Option<Up> {
    let frame = match reader.next().await? {
        Ok(frame) => frame,
        Err(AnyDelimiterCodecError::MaxChunkLengthExceeded) => {
            tracing::warn!("link closed: a frame is longer than the limit");
            return None;
        }
        Err(AnyDelimiterCodecError::Io(_)) => return None,
    };
    match serde_json::from_slice::<Up>(&frame) {
        Ok(up) => {
            failpoint::hit_of("on", "receive", up.name());
            Some(up)
        }
        Err(error) => {
            tracing::warn!(%error, "link closed: frame cannot be parsed");
            None
        }
    }
}

/// Answers a hello. Returns the runtime's incarnation, or none if the connection is to be closed.
async fn greet(
    handle: &AgentHandle,
    hello: &Hello,
    connection: Connection,
    peer: Option<Identity>,
) -> Option<Incarnation> {
    let mut guard = handle.lock().await;
    let mut side = guard.link.clone();
    let greeting = match is_proven(&guard, hello).await {
        true => side.hello(hello, &guard.state),
        false => Greeting::Refuse(Refusal::Unproven),
    };
    let (lent, lent_digest) = handle.daemon.lent.with_digest(handle.id);
    let answer = match greeting {
        Greeting::Refuse(why) => Err(why),
        Greeting::Welcome(incarnation) => match handle.daemon.store.load(handle.id).await {
            Ok(loaded) => {
                let draft = handle.daemon.store.draft(handle.id).await.ok().flatten();
                let text = |draft: agentd_store::Draft| {
                    let text = String::from_utf8(draft.bytes).ok()?;
                    Some((draft.request, text))
                };
                Ok(Down::Welcome(Box::new(Welcome {
                    incarnation,
                    state: loaded.state,
                    window: loaded.window,
                    draft: draft.and_then(text),
                    env: (*guard.env).clone(),
                    stored: handle.daemon.envs.stored(handle.id),
                    lent,
                    holds_turns: holds_turns(&guard),
                })))
            }
            Err(_) => return None,
        },
        Greeting::Resume { after } => match missed(handle, after).await {
            Some(events) => {
                let seen = hello.seen.map(|seen| seen.incarnation);
                let (of, n) = guard.appended;
                let appended = if Some(of) == seen { n } else { 0 };
                Ok(Down::Resumed { events, appended })
            }
            None => return None,
        },
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(why) => {
            tracing::info!(agent = %handle.id, %why, "runtime refused");
            let _gone = connection.down.send(Down::Refused { why });
            return None;
        }
    };
    // Before the runtime can start a tool: the directory is bound into the tool's sandbox if it exists.
    http::serve_tools(&handle.daemon, handle.id).await;
    let (_, incarnation) = side.current()?;
    side.greeted(guard.state.head);
    guard.link = side;
    let holds_turns = matches!(&answer, Down::Welcome(welcome) if welcome.holds_turns);
    let _broken = connection.down.send(answer);
    guard.down = Some(Connection {
        holds_turns,
        ..connection
    });
    if hello.seen.is_some() {
        // The runtime was connected before, maybe to an earlier daemon: this daemon may not know its variables.
        let mut has = hello.env.clone();
        has.retain(|name, _| !hello.stored.contains(name));
        if !handle.daemon.envs.has_brought(handle.id) {
            guard.merge_env(&has);
        }
        lifecycle::subagents::merge_env(&guard, &has).await;
        guard.given = Some(Arc::new(hello.env.clone()));
        guard.given_lent.clone_from(&hello.lent);
    } else {
        guard.given = Some(Arc::clone(&guard.env));
        guard.given_lent = lent_digest;
    }
    if let Some(peer) = peer {
        guard.adopt(peer);
    }
    if let Some(process) = &mut guard.process {
        process.is_outdated = hello.is_outdated(handle.daemon.build.as_deref());
    }
    if guard.process.as_ref().is_some_and(|it| it.is_stopping) {
        // The order may have been lost with the broken connection.
        guard.order(match handle.daemon.is_ending() {
            true => Order::Leave,
            false => Order::Stop,
        });
    }
    guard.changed();
    guard.reconcile();
    Some(incarnation)
}

/// Whether the runtime may not begin a turn yet. Without work of another kind it would not have been started.
fn holds_turns(guard: &AgentGuard<'_>) -> bool {
    let waits = guard.handle.daemon.admission.waits(guard.handle.id);
    guard.state.turn.is_none() && waits.is_some()
}

/// Whether the runtime has the secret that the agent's newest process was given. For a process of an earlier daemon the
/// digest comes from disk.
async fn is_proven(guard: &AgentGuard<'_>, hello: &Hello) -> bool {
    let (layout, agent) = (guard.handle.daemon.layout.clone(), hello.agent);
    let proof = match &guard.proof {
        Some(proof) => Ok(proof.clone()),
        None => blocking(move || layout.read_proof(agent)).await,
    };
    let is_proven = proof.is_ok_and(|proof| hello.secret.has_digest(&proof));
    is_proven || failpoint::injected_bug("link_unproven")
}

async fn missed(handle: &AgentHandle, after: Seq) -> Option<Vec<Event>> {
    let mut events = Vec::new();
    let mut after = after;
    loop {
        let query = ReadQuery::all(handle.id, after, PAGE);
        let page = handle.daemon.store.read(query).await.ok()?;
        events.extend(without_files(&page.events));
        match page.next {
            Some(next) => after = next,
            None => return Some(events),
        }
    }
}

/// Commits a runtime's append. False if the connection is to be closed: the runtime reconnects and sends the append
/// again.
async fn take(handle: &AgentHandle, append: Append, down: &mpsc::UnboundedSender<Down>) -> bool {
    let no_fence = failpoint::injected_bug("no_fence");
    if no_fence && append.ends.is_some() {
        // tidy: polls nothing; an injected bug needs an append that arrives late
        tokio::time::sleep(LATE).await;
    }
    let begins_turn = |event: &NewEvent| event.body.kind() == Kind::TurnStarted;
    let mut guard = handle.lock().await;
    if append.events.iter().any(begins_turn) {
        // The runtime sent it before it learned of the restore.
        while guard.state.files.restoring.is_some() {
            drop(guard);
            let is_over = |guard: &mut AgentGuard<'_>| {
                let now = guard.state.files.restoring;
                now.is_none().then_some(())
            };
            handle.until(is_over).await;
            guard = handle.lock().await;
        }
    }
    if guard.state.is_held() || (!no_fence && !guard.link.may_write(append.incarnation)) {
        let why = Refusal::Stale;
        let _gone = down.send(Down::Refused { why });
        return false;
    }
    let foreign = append.events.iter().map(|event| event.body.kind());
    let foreign = foreign.filter(|_| !failpoint::injected_bug("kinds_unchecked"));
    if let Some(kind) = foreign.into_iter().find(|kind| !is_a_runtimes(*kind)) {
        tracing::error!(agent = %handle.id, kind = kind.name(), "append rejected: wrong kind");
        let why = Refusal::Confused;
        let _gone = down.send(Down::Refused { why });
        return false;
    }
    if handle.daemon.check_home().is_err() {
        return false;
    }
    let is_new_turn = append.events.iter().any(begins_turn);
    let turns = turns_in(&append);
    // A turn that is sent again, because its answer was lost, has begun already.
    if is_new_turn
        && guard.state.turn.is_none()
        && lifecycle::admission::ask(&guard).await.is_some()
    {
        // The process ends, and another one begins the turn later. The prompt stays in the queue.
        let why = Refusal::Stale;
        let _gone = down.send(Down::Refused { why });
        guard.changed();
        return false;
    }
    match guard.commit_own(append).await {
        Ok(said) => {
            log_turns(&guard, &turns);
            if let Some(said) = said {
                let _broken = down.send(said);
            }
            guard.limit_files().await;
            guard.reconcile();
            true
        }
        // It would be refused as often as it is sent.
        Err(error @ agentd_store::Error::TooLarge { .. }) => {
            tracing::error!(agent = %handle.id, %error, "append rejected: too large");
            let why = Refusal::Confused;
            let _gone = down.send(Down::Refused { why });
            false
        }
        Err(error) => {
            tracing::warn!(agent = %handle.id, %error, "append failed");
            false
        }
    }
}
