//! Runs the daemon: it acquires its lock, opens the store, serves its sockets, and shuts down.

mod served;
mod watchdog;

use crate::backup;
use crate::daemon::{Daemon, Stopped};
use crate::ending::Ending;
use crate::home::{self, Home};
use crate::hooks;
use crate::layout::{self, Layout};
use crate::lifecycle;
use crate::outbox;
use crate::purge_log;
use crate::runtimes::Program;
use crate::scopes::Scopes;
use crate::service::{News, Service};
use crate::settings::Settings;
use crate::sockets;
use crate::spawn::{self, keep};
use crate::stop_mark::StopMark;
use crate::supervisor::Supervisor;
use crate::transcript::Transcripts;
use agentd_core::hook::HookEvent;
use agentd_failpoint as failpoint;
use agentd_store::Store;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;

/// Time limit for the agents' processes to end when the daemon is stopped.
const LAST_EFFECTS: Duration = Duration::from_secs(20);

/// The same if the state directory is lost. It is short, because nothing that the processes do can be saved.
const NOTHING_TO_SAVE: Duration = Duration::from_secs(1);

/// Time limit for file operations that are in progress when the daemon ends.
const LAST_FILES: Duration = Duration::from_secs(3);

/// How long a new daemon waits until an ending daemon releases its lock.
const PREDECESSOR: Duration = Duration::from_secs(8);
const LOOK: Duration = Duration::from_millis(10);
/// How long a daemon must be seen before another one gives up. A process that a killed daemon was about to start has the
/// daemon's lock and socket for a moment.
const SURE: Duration = Duration::from_millis(500);

/// The store makes a checkpoint when nothing has been written for this long.
const QUIET: Duration = Duration::from_secs(1);

/// Why a daemon did not start, or ended without being told to.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("another daemon runs in {}", .0.display())]
    Taken(PathBuf),
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    #[error("the state directory {} was deleted, or replaced by another one", .0.display())]
    HomeLost(PathBuf),
    #[error(
        "a restore of a backup into {} did not complete: run `agentd restore-backup` again, or delete what is in it", .0.display()
    )]
    HalfRestored(PathBuf),
    #[error(transparent)]
    Store(#[from] agentd_store::Error),
    #[error(transparent)]
    Process(#[from] agentd_process::Error),
}

/// Refuses a directory into which a backup is being restored, or was not restored completely.
fn check_whole(layout: &Layout) -> Result<(), StartError> {
    match layout.unfinished_restore().exists() {
        true => Err(StartError::HalfRestored(layout.home().to_owned())),
        false => Ok(()),
    }
}

/// Opens the store of a state directory.
pub type OpenStore = fn(&Layout) -> agentd_store::Result<Arc<dyn Store>>;

fn listen(path: &Path) -> Result<UnixListener, StartError> {
    let what = format!("cannot listen on {}", path.display());
    sockets::listen(path).map_err(io_error(what))
}

fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> StartError {
    let what = what.into();
    |source| StartError::Io { what, source }
}

/// Runs until SIGTERM or SIGINT, which leave the agents' processes running, or until a client stops the daemon, which
/// ends them.
///
/// The store is opened only after the daemon has acquired its lock.
pub async fn run(settings: Settings, open: OpenStore) -> Result<(), StartError> {
    let no_signals = "signal handlers cannot be installed";
    let mut terminate = signal(SignalKind::terminate()).map_err(io_error(no_signals))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(io_error(no_signals))?;
    let mut hangup = signal(SignalKind::hangup()).map_err(io_error(no_signals))?;
    let layout = Layout::new(&settings.home);
    // First: nothing may be created in it.
    check_whole(&layout)?;
    let what = format!("{} cannot be used", settings.home.display());
    layout.make().map_err(io_error(what))?;
    let service = settings.service.clone();
    let _lock = take_lock(&layout, &service).await?;
    failpoint::hit("after", "lock");
    // Again: a restore that began since has not seen this daemon, if it looked before anything was created.
    check_whole(&layout)?;
    let (identity, suspicion) =
        home::look(&layout).map_err(io_error("home.json cannot be used"))?;
    let boot = home::boot_of(&identity).map_err(io_error("the boot id cannot be read"))?;
    StopMark::remove(&layout).map_err(io_error("the stop mark cannot be removed"))?;
    agentd_process::adopt_orphans()?;
    agentd_process::remove_stale_cgroups();
    let store = open(&layout)?;
    let home = Home::new(&layout, identity, suspicion);
    let home = home.map_err(io_error("the state directory was deleted"))?;
    let links = listen(&layout.link_socket())?;
    let (transcripts, work) = Transcripts::new(layout.clone(), Arc::clone(&store));
    let at = settings.home.clone();
    let scopes = Scopes::connect(&settings).await;
    let runtimes = Arc::new(Program::new(&layout, &settings, scopes));
    let supervisor = Box::new(Supervisor::new(runtimes));
    let daemon = Arc::new(Daemon::new(
        layout.clone(),
        home,
        boot,
        store,
        transcripts,
        settings,
        supervisor,
    ));
    let (follower, work) = (Arc::clone(&daemon), Arc::new(Mutex::new(work)));
    keep("transcripts", daemon.ending(), move || {
        let (follower, work) = (Arc::clone(&follower), Arc::clone(&work));
        async move { follower.transcripts.follow(&work).await }
    });
    let linked = served::serve_links(&daemon, links);
    if daemon.is_read_only() {
        tracing::warn!(why = ?daemon.home.suspicion, "home opened read-only: suspected copy");
    } else {
        hooks::adopt::adopt_all(&daemon).await;
        lifecycle::files::adopt_all(&daemon).await;
        lifecycle::run_command::adopt_all(&daemon).await;
        lifecycle::mcp::remove_left(&daemon).await;
        if let Err(error) = lifecycle::revive::revive(&daemon).await {
            tracing::error!(%error, "not all agents resumed");
        }
    }
    failpoint::hit("after", "revival");
    // Before the first request: a notification is due for everything that happens from now on.
    outbox::start(&daemon).await;
    // The API socket comes last: the daemon answers requests only when everything else is ready.
    let api_file = served::ApiFile::default();
    let listeners = served::listen_api(&layout, &service, &api_file).await;
    let listeners = listeners.inspect_err(|_| outbox::end(&daemon))?;
    let serve = |listener| served::serve_api(&daemon, listener);
    let apis: Vec<_> = listeners.into_iter().map(serve).collect();
    let watched = (Arc::clone(&daemon), layout.clone(), api_file.clone());
    keep("sockets", daemon.ending(), move || {
        served::reconcile(Arc::clone(&watched.0), watched.1.clone(), watched.2.clone())
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
    let watched = Arc::clone(&daemon);
    keep("admission", daemon.ending(), move || {
        lifecycle::admission::watch(Arc::clone(&watched))
    });
    let backed_up = Arc::clone(&daemon);
    keep("backups", daemon.ending(), move || {
        backup::scheduled::watch(Arc::clone(&backed_up))
    });
    let watched = Arc::clone(&daemon);
    keep("retention", daemon.ending(), move || {
        lifecycle::prune::watch(Arc::clone(&watched))
    });
    let watched = Arc::clone(&daemon);
    keep("schedules", daemon.ending(), move || {
        lifecycle::schedule::watch(Arc::clone(&watched))
    });
    if let Some(limit) = service.watchdog {
        let watched = (Arc::clone(&daemon), service.clone());
        keep("watchdog", daemon.ending(), move || {
            watchdog::watchdog(Arc::clone(&watched.0), watched.1.clone(), limit)
        });
    }
    if !daemon.is_read_only() {
        let lister = Arc::clone(&daemon);
        spawn::spawn("lists of purges", async move {
            // An earlier daemon may have died between a purge and its lists.
            purge_log::update(&lister.store, &lister.layout, lister.home.identity.id).await;
        });
        let binder = Arc::clone(&daemon);
        spawn::spawn("bindings of purged agents", async move {
            // The same between a purge and the end of the agent's bindings.
            lifecycle::bind::end_purged(&binder).await;
        });
        spawn::spawn("tidy", lifecycle::tidy::all(Arc::clone(&daemon)));
    }
    service.tell(News::Ready);
    tracing::info!(home = %at.display(), pid = std::process::id(), "daemon ready");

    let starter = Arc::clone(&daemon);
    let started = serde_json::json!({"pid": std::process::id()});
    spawn::spawn("daemon start hooks", async move {
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
        // A client that requested a stop was told that the agents' processes end too: a signal that arrives at
        // the same time does not change that.
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
    service.tell(News::Stopping);
    failpoint::hit("before", "leave");
    let stopped = serde_json::json!({"reason": reason});
    tell_hooks(&daemon, HookEvent::DaemonStop, stopped).await;
    if daemon.check_home().is_ok() {
        // Requests that wait for them would delay the end, and without the daemon nothing would end them.
        lifecycle::files::end_readers(&daemon).await;
    }
    daemon.end(Ending::Leaves);
    for api in apis {
        let _ended = api.await;
    }
    let _ended = linked.await;
    outbox::end(&daemon);
    if daemon.check_home().is_err() {
        // Whatever is at the path now does not belong to this daemon.
        return Err(StartError::HomeLost(at));
    }
    // A daemon that is starting creates its sockets only after this one has released the lock.
    let _gone = std::fs::remove_file(layout.link_socket());
    api_file.remove(&layout.api_socket());
    spawn::end_blocking(LAST_FILES).await;
    tracing::info!("daemon ended");
    failpoint::hit("before", "unlock");
    Ok(())
}

/// Runs the user's hooks for an event of the daemon, unless the state directory is a suspected copy or is lost.
async fn tell_hooks(daemon: &Arc<Daemon>, event: HookEvent, fields: serde_json::Value) {
    if !daemon.is_read_only() && daemon.check_home().is_ok() {
        hooks::observe::of_daemon(daemon, event, fields).await;
    }
}

/// Acquires the lock that a daemon holds for as long as it lives. A daemon that is ending no longer listens but still
/// holds the lock for a moment: this waits for it. If a daemon listens, it keeps running, and this fails at once.
async fn take_lock(layout: &Layout, service: &Service) -> Result<File, StartError> {
    let deadline = Instant::now() + PREDECESSOR;
    let mut seen_since = None;
    loop {
        match layout::hold(&layout.daemon_lock()) {
            Ok(lock) => return Ok(lock),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                return Err(io_error("the daemon lock cannot be acquired")(error));
            }
            Err(_) => {}
        }
        // If the service manager listens, a connection says nothing about another daemon.
        let listens =
            service.listener.is_none() && UnixStream::connect(layout.api_socket()).await.is_ok();
        let now = Instant::now();
        let since = match listens {
            true => *seen_since.get_or_insert(now),
            false => {
                seen_since = None;
                now
            }
        };
        let is_seen = now.duration_since(since) >= SURE;
        if is_seen || now >= deadline || failpoint::injected_bug("lock_not_awaited") {
            return Err(StartError::Taken(layout.home().to_owned()));
        }
        // tidy: polls for the lock
        tokio::time::sleep(LOOK).await;
    }
}

/// Adopts the runtimes of an earlier daemon that have not connected yet.
async fn take_over(daemon: &Arc<Daemon>) {
    let runtime_locks = daemon.layout.taken_runtime_locks();
    let runtime_locks =
        runtime_locks.inspect_err(|error| tracing::error!(%error, "runtime locks not read"));
    for (agent, holder) in runtime_locks.unwrap_or_default() {
        if let Ok(handle) = daemon.handle(agent).await {
            handle.lock().await.adopt(holder);
        }
    }
}

/// Ends the agents' processes, each after its current step. Their turns continue when they run again.
async fn stop_all(daemon: &Arc<Daemon>, patience: Duration) {
    take_over(daemon).await;
    let handles = daemon.handles();
    for handle in &handles {
        handle.lock().await.leave_process();
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

/// Checkpoints the journal's write-ahead log whenever nothing has been written for a while.
async fn checkpoint(daemon: Arc<Daemon>) {
    let mut commits = daemon.store.commits();
    while commits.next().await {
        while let Ok(true) = tokio::time::timeout(QUIET, commits.next()).await {}
        if let Err(error) = daemon.store.checkpoint().await {
            tracing::warn!(%error, "journal checkpoint failed");
        }
    }
}

/// Reaps orphaned processes, which the kernel reparents to the daemon.
async fn reap() {
    let Ok(mut children) = signal(SignalKind::child()) else {
        return;
    };
    while children.recv().await.is_some() {
        if let Err(error) = agentd_process::reap_orphans() {
            tracing::warn!(%error, "orphaned processes not reaped");
        }
    }
}
