//! The daemon: it owns the store, looks after the agents' processes, and answers over a socket.
//!
//! It may **not** decide what core can decide.
//!
//! - [`layout`]: where things are, and who holds what.
//! - `desk`: one agent at hand; everything that is written to its journal goes through it.
//! - `supervisor`: the agents' processes.
//! - `link`: what runtimes say and hear.
//! - `hooks`: users' programs that hear of what happens.
//! - `lifecycle`: what can be done to an agent, one file per verb.
//! - `http`: the same over HTTP, one file per noun.

mod answer;
mod claims;
pub mod clock;
mod daemon;
mod desk;
mod hooks;
mod http;
pub mod layout;
mod lifecycle;
mod link;
mod problem;
mod sockets;
mod supervisor;
mod title;
mod transcript;
mod view;

use crate::daemon::{Daemon, Ending};
use crate::layout::Layout;
use crate::supervisor::end_process;
use crate::transcript::Transcripts;
use agentd_client::api::Env;
use agentd_core::hook::HookEvent;
use agentd_process::failpoint;
use agentd_store::{Options, SqliteStore, Store};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long the agents' processes may take to end with the daemon.
const LAST_EFFECTS: Duration = Duration::from_secs(20);

/// Nothing is written for so long: nobody is in a hurry.
const QUIET: Duration = Duration::from_secs(1);

/// How a daemon is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where everything is kept.
    pub home: PathBuf,
    /// What runs an agent, with `runtime` as its first argument: this very program.
    pub program: PathBuf,
    /// How long a runtime goes on without a daemon.
    pub orphan: Duration,
    /// What agents work with whose callers brought nothing.
    pub env: Env,
    /// What a runtime's own environment holds: never a key.
    pub runtime_env: Vec<(OsString, OsString)>,
}

/// Why a daemon did not run, or ended otherwise than it was told to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("another daemon runs in {}", .0.display())]
    Taken(PathBuf),
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    #[error(transparent)]
    Store(#[from] agentd_store::Error),
    #[error(transparent)]
    Process(#[from] agentd_process::Error),
}

fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    let what = what.into();
    |source| Error::Io { what, source }
}

/// Runs until it is told to end: by SIGTERM or SIGINT, which leave the agents' processes alone, or by a
/// client, which does not.
pub async fn run(settings: Settings) -> Result<(), Error> {
    let mut terminate = signal(SignalKind::terminate()).map_err(io_error("signals"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(io_error("signals"))?;
    let mut hangup = signal(SignalKind::hangup()).map_err(io_error("signals"))?;
    let layout = Layout::new(&settings.home);
    let what = format!("{} cannot be used", settings.home.display());
    layout.make().map_err(io_error(what))?;
    let _lock = match layout::hold(&layout.daemon_lock()) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Err(Error::Taken(settings.home));
        }
        Err(error) => return Err(io_error("the daemon's lock cannot be taken")(error)),
    };
    failpoint::hit("after", "lock");
    agentd_process::adopt_orphans()?;
    let mut options = Options::new(&settings.home);
    options.points = failpoint::folder().map(|_| failpoint::hit_of as agentd_store::Points);
    options.mutants = failpoint::folder().map(|_| failpoint::mutant as agentd_store::Mutants);
    let store = SqliteStore::open(options)?;
    let links = sockets::listen(&layout.link_socket())?;
    let store: Arc<dyn Store> = Arc::new(store);
    let (transcripts, work) = Transcripts::new(layout.clone(), Arc::clone(&store));
    let daemon = Arc::new(Daemon::new(
        layout.clone(),
        store,
        transcripts,
        settings.program,
        settings.orphan,
        settings.env,
        settings.runtime_env,
    ));
    let follower = Arc::clone(&daemon);
    tokio::spawn(async move { follower.transcripts.follow(work).await });
    let linked = tokio::spawn(link::serve(Arc::clone(&daemon), links));
    hooks::settle::settle_all(&daemon).await;
    if let Err(problem) = lifecycle::revive::revive(&daemon).await {
        tracing::error!(%problem, "not all agents could be looked at");
    }
    failpoint::hit("after", "revival");
    // Last of all: whoever is answered finds everything in its place.
    let api = sockets::listen(&layout.api_socket())?;
    let served = tokio::spawn(http::serve(Arc::clone(&daemon), api));
    tokio::spawn(sockets::mind(Arc::clone(&daemon), layout.clone()));
    tokio::spawn(reap());
    tokio::spawn(rest(Arc::clone(&daemon)));
    tokio::spawn(lifecycle::auto_reset::watch(Arc::clone(&daemon)));
    tracing::info!(home = %settings.home.display(), pid = std::process::id(), "ready");

    let starter = Arc::clone(&daemon);
    let started = serde_json::json!({"pid": std::process::id()});
    tokio::spawn(async move {
        hooks::observe::of_daemon(&starter, HookEvent::DaemonStart, started).await;
    });

    let mut ending = daemon.ending();
    let reason = loop {
        tokio::select! {
            _ = ending.wait_for(|ending| *ending != Ending::No) => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => continue,
        }
        // Whoever asked for a stop has heard that the agents' processes end too: a signal that comes at
        // the same time takes nothing of that back.
        if daemon.choose_end(Ending::Alone) == Ending::Stops {
            stop_all(&daemon).await;
            break "stop";
        }
        break "signal";
    };
    failpoint::hit("before", "leave");
    let stopped = serde_json::json!({"reason": reason});
    hooks::observe::of_daemon(&daemon, HookEvent::DaemonStop, stopped).await;
    daemon.end(Ending::Leaves);
    let _ended = served.await;
    let _ended = linked.await;
    // Another daemon may be on its way already; it makes them anew.
    for socket in [layout.api_socket(), layout.link_socket()] {
        let _gone = std::fs::remove_file(socket);
    }
    tracing::info!("ended");
    Ok(())
}

/// Those of an earlier daemon that have not come by themselves yet.
async fn take_over(daemon: &Arc<Daemon>) {
    let seats = daemon.layout.taken_seats();
    let seats = seats.inspect_err(|error| tracing::error!(%error, "nobody knows who runs"));
    for (agent, holder) in seats.unwrap_or_default() {
        if let Ok(desk) = daemon.desk(agent).await {
            daemon.greeted(&desk, &mut desk.lock().await, Some(holder));
        }
    }
}

/// Ends the agents' processes, each with what it has in hand; their turns go on when they run again.
async fn stop_all(daemon: &Arc<Daemon>) {
    take_over(daemon).await;
    let desks = daemon.desks().await;
    for desk in &desks {
        end_process(&mut desk.lock().await);
    }
    let all = async {
        for desk in &desks {
            desk.until(|guard| guard.process.is_none().then_some(()))
                .await;
        }
    };
    if tokio::time::timeout(LAST_EFFECTS, all).await.is_err() {
        for desk in &desks {
            lifecycle::kill(desk).await;
        }
    }
}

/// Lets the store put things in their place whenever nothing has been written for a while.
async fn rest(daemon: Arc<Daemon>) {
    let mut commits = daemon.store.commits();
    while commits.next().await {
        while let Ok(true) = tokio::time::timeout(QUIET, commits.next()).await {}
        if let Err(error) = daemon.store.rest().await {
            tracing::warn!(%error, "the journal's log is not emptied");
        }
    }
}

/// Buries whoever has lost its parent and come to us.
async fn reap() {
    let Ok(mut children) = signal(SignalKind::child()) else {
        return;
    };
    while children.recv().await.is_some() {
        if let Err(error) = agentd_process::reap_orphans() {
            tracing::warn!(%error, "orphans are not reaped");
        }
    }
}
