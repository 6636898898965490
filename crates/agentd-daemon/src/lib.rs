//! The daemon: it owns the store, looks after the agents' processes, and answers over a socket.
//!
//! It may **not** decide what core can decide.
//!
//! - [`layout`]: where things are, and who holds what.
//! - [`home`]: which state directory it is, and whether it is still there.
//! - `handle`: one agent at hand; everything that is written to its journal goes through it.
//! - `supervisor`: the agents' processes.
//! - `link`: what runtimes say and hear.
//! - [`secrets`]: the keys that the user stored; `envs`: what agents work with.
//! - `hooks`: users' programs that hear of what happens.
//! - `lifecycle`: what can be done to an agent, one file per verb.
//! - `http`: the same over HTTP, one file per noun.

mod agent_handle;
mod answer;
mod caller;
mod claims;
pub mod clock;
pub mod confine;
mod daemon;
mod envs;
pub mod home;
mod hooks;
mod http;
pub mod layout;
mod lifecycle;
mod link;
mod problem;
pub mod project;
pub mod secrets;
mod sockets;
mod spawn;
pub mod stop_mark;
mod supervisor;
mod title;
mod transcript;
mod trust;
mod view;

use crate::daemon::{Daemon, Ending, Stopped};
use crate::home::Home;
use crate::layout::Layout;
use crate::spawn::keep;
use crate::stop_mark::StopMark;
use crate::supervisor::leave_process;
use crate::transcript::Transcripts;
use agentd_client::api::Env;
use agentd_core::hook::HookEvent;
use agentd_process::failpoint;
use agentd_store::{Options, SqliteStore, Store};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;

/// How long the agents' processes may take to end with the daemon.
const LAST_EFFECTS: Duration = Duration::from_secs(20);

/// The same where nothing that they do can be kept.
const NOTHING_TO_SAVE: Duration = Duration::from_secs(1);

/// How long a daemon that is ending may take to let go of its lock.
const PREDECESSOR: Duration = Duration::from_secs(8);
const LOOK: Duration = Duration::from_millis(10);

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
    /// How long a reset or a stop waits for all SessionEnd hooks together; they run on after it.
    pub session_end_wait: Duration,
    /// What agents work with whose callers brought nothing.
    pub env: Env,
    /// Variables that hold keys of providers.
    pub key_names: BTreeSet<String>,
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
    #[error("the state directory {} was deleted, or replaced by another one", .0.display())]
    HomeLost(PathBuf),
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
    let _lock = take_lock(&layout).await?;
    failpoint::hit("after", "lock");
    let (identity, suspicion) = home::look(&layout).map_err(io_error("home.json"))?;
    let boot = home::boot_of(&identity).map_err(io_error("the machine's boot id"))?;
    StopMark::remove(&layout).map_err(io_error("the mark of the last stop cannot be removed"))?;
    agentd_process::adopt_orphans()?;
    agentd_process::remove_stale_cgroups();
    let mut options = Options::new(&settings.home);
    options.beside = vec![layout.agents()];
    options.failpoints = failpoint::dir().map(|_| failpoint::hit_of as agentd_store::Failpoints);
    options.injected_bugs =
        failpoint::dir().map(|_| failpoint::injected_bug as agentd_store::InjectedBugs);
    let store = SqliteStore::open(options)?;
    let home = Home::new(&layout, identity, suspicion);
    let home = home.map_err(io_error("the state directory was deleted"))?;
    let links = sockets::listen(&layout.link_socket())?;
    let store: Arc<dyn Store> = Arc::new(store);
    let (transcripts, work) = Transcripts::new(layout.clone(), Arc::clone(&store));
    let at = settings.home.clone();
    let daemon = Daemon::new(layout.clone(), home, boot, store, transcripts, settings);
    let daemon = Arc::new(daemon);
    let (follower, work) = (Arc::clone(&daemon), Arc::new(Mutex::new(work)));
    keep("transcripts", daemon.ending(), move || {
        let (follower, work) = (Arc::clone(&follower), Arc::clone(&work));
        async move { follower.transcripts.follow(&work).await }
    });
    let linked = sockets::serve_links(&daemon, links);
    if daemon.is_read_only() {
        tracing::warn!(why = ?daemon.home.suspicion, "open read-only: a suspected copy");
    } else {
        hooks::adopt::adopt_all(&daemon).await;
        if let Err(problem) = lifecycle::revive::revive(&daemon).await {
            tracing::error!(%problem, "not all agents could be looked at");
        }
    }
    failpoint::hit("after", "revival");
    // Last of all: whoever is answered finds everything in its place.
    let api = sockets::listen(&layout.api_socket())?;
    let served = sockets::serve_api(&daemon, api);
    let watched = (Arc::clone(&daemon), layout.clone());
    keep("sockets", daemon.ending(), move || {
        sockets::reconcile(Arc::clone(&watched.0), watched.1.clone())
    });
    keep("reaper", daemon.ending(), reap);
    let checkpointed = Arc::clone(&daemon);
    keep("checkpoints", daemon.ending(), move || {
        checkpoint(Arc::clone(&checkpointed))
    });
    let watched = Arc::clone(&daemon);
    keep("idle resets", daemon.ending(), move || {
        lifecycle::auto_reset::watch(Arc::clone(&watched))
    });
    tracing::info!(home = %at.display(), pid = std::process::id(), "ready");

    let starter = Arc::clone(&daemon);
    let started = serde_json::json!({"pid": std::process::id()});
    spawn::spawn("hooks of the daemon's start", async move {
        tell_hooks(&starter, HookEvent::DaemonStart, started).await;
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
            failpoint::hit("before", "stop");
            let patience = match daemon.home.is_lost() {
                true => NOTHING_TO_SAVE,
                false => LAST_EFFECTS,
            };
            stop_all(&daemon, patience).await;
            if !daemon.home.is_lost() {
                daemon.mark_stopped(Stopped::Complete);
            }
            break "stop";
        }
        break "signal";
    };
    failpoint::hit("before", "leave");
    let stopped = serde_json::json!({"reason": reason});
    tell_hooks(&daemon, HookEvent::DaemonStop, stopped).await;
    daemon.end(Ending::Leaves);
    let _ended = served.await;
    let _ended = linked.await;
    if daemon.check_home().is_err() {
        // Whatever is at the path by now is another's.
        return Err(Error::HomeLost(at));
    }
    // Another daemon may be on its way already; it makes them anew.
    for socket in [layout.api_socket(), layout.link_socket()] {
        let _gone = std::fs::remove_file(socket);
    }
    tracing::info!("ended");
    failpoint::hit("before", "unlock");
    Ok(())
}

/// The user's hooks hear of the daemon, not of one that only reads a copy or has nothing left to work in.
async fn tell_hooks(daemon: &Arc<Daemon>, event: HookEvent, fields: serde_json::Value) {
    if !daemon.is_read_only() && daemon.check_home().is_ok() {
        hooks::observe::of_daemon(daemon, event, fields).await;
    }
}

/// The lock that a daemon holds for as long as it lives. A daemon that is ending does not listen any more, and holds
/// it for a moment longer: that is waited for. One that listens is there to stay.
async fn take_lock(layout: &Layout) -> Result<File, Error> {
    let deadline = Instant::now() + PREDECESSOR;
    loop {
        match layout::hold(&layout.daemon_lock()) {
            Ok(lock) => return Ok(lock),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                return Err(io_error("the daemon's lock cannot be taken")(error));
            }
            Err(_) => {}
        }
        let listens = UnixStream::connect(layout.api_socket()).await.is_ok();
        if listens || Instant::now() >= deadline || failpoint::injected_bug("lock_not_awaited") {
            return Err(Error::Taken(layout.home().to_owned()));
        }
        // tidy: polls for the lock
        tokio::time::sleep(LOOK).await;
    }
}

/// Those of an earlier daemon that have not come by themselves yet.
async fn take_over(daemon: &Arc<Daemon>) {
    let runtime_locks = daemon.layout.taken_runtime_locks();
    let runtime_locks =
        runtime_locks.inspect_err(|error| tracing::error!(%error, "nobody knows who runs"));
    for (agent, holder) in runtime_locks.unwrap_or_default() {
        if let Ok(handle) = daemon.handle(agent).await {
            daemon.greeted(&handle, &mut handle.lock().await, Some(holder));
        }
    }
}

/// Ends the agents' processes, each with what it has in hand; their turns go on when they run again.
async fn stop_all(daemon: &Arc<Daemon>, patience: Duration) {
    take_over(daemon).await;
    let handles = daemon.handles().await;
    for handle in &handles {
        leave_process(&mut handle.lock().await);
    }
    let all = async {
        for handle in &handles {
            handle
                .until(|guard| guard.process.is_none().then_some(()))
                .await;
        }
    };
    if tokio::time::timeout(patience, all).await.is_err() {
        for handle in &handles {
            lifecycle::kill(handle).await;
        }
    }
}

/// Lets the store put things in their place whenever nothing has been written for a while.
async fn checkpoint(daemon: Arc<Daemon>) {
    let mut commits = daemon.store.commits();
    while commits.next().await {
        while let Ok(true) = tokio::time::timeout(QUIET, commits.next()).await {}
        if let Err(error) = daemon.store.checkpoint().await {
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
