//! One agent in use: its folded state, its process, and the clients that watch it.
//!
//! Everything that is written to an agent's journal goes through its handle, one append at a time. So a decision made
//! from the state is still valid when it is written.

mod guard;

pub use guard::AgentGuard;

use crate::claims::Claims;
use crate::problem::{Result, of_store};
use crate::supervisor::{Process, Starts};
use crate::view;
use agentd_client::api::{Delta, Env};
use agentd_core::event::Event;
use agentd_core::id::{AgentId, Incarnation, Seq};
use agentd_core::link::{self, Down};
use agentd_core::state::AgentState;
use agentd_store::Store;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, broadcast, mpsc, oneshot, watch};
use tokio::task::AbortHandle;

/// Deltas that are buffered for a slow reader. It misses older ones and gets the whole message afterwards.
const DELTAS: usize = 64;

pub struct AgentHandle {
    pub id: AgentId,
    store: Arc<dyn Store>,
    claims: Arc<Claims>,
    /// The lock of the agent. It is held from reading the state until the append, so that no other append comes
    /// between.
    inner: Mutex<Inner>,
    /// A counter that wakes the tasks that wait for a change of the agent.
    changes: watch::Sender<u64>,
    /// The text of a streaming reply, for the clients that watch.
    deltas: broadcast::Sender<Delta>,
}

pub struct Inner {
    /// The fold of the journal. Changed only by events that are committed, or by a reload.
    pub state: AgentState,
    /// The daemon's side of the link: which incarnation may write.
    pub link: link::Daemon,
    /// The connection to the runtime, if it is connected.
    pub down: Option<Connection>,
    /// The agent's process, also while it is being started.
    pub process: Option<Process>,
    pub starts: Starts,
    /// The variables for the next process.
    pub env: Arc<Env>,
    /// Keys that the runtime read from a file or a command. The runtime reports them, so that they are redacted.
    pub keys: Vec<String>,
    /// The variables that the newest process has. If they differ from `env`, the process is replaced.
    pub given: Option<Arc<Env>>,
    /// The digest of the secret that the newest process was given, if this daemon started it.
    pub proof: Option<String>,
    /// The newest append of the newest incarnation.
    pub appended: (Incarnation, u64),
    /// The beginning of the last answer, with the journal's head at that time. A cache: reading it needs the window.
    pub summary: Option<(Seq, String)>,
    /// A task is carrying out the reset. Set by reconcile, cleared by the task.
    pub resetting: bool,
    /// A task is reporting the agent's end to its parent. Set by reconcile, cleared by the task.
    pub reporting: bool,
    /// A verb wants a process even if the state does not need one. Cleared when a process starts, by a stop, and by the
    /// idle timer.
    pub wanted: bool,
    /// SessionStart hooks that are running, or that a restart is about to invoke. No process is started before they
    /// have ended.
    pub awaiting_hooks: u32,
    /// SessionStart hooks were invoked for the first conversation, or there were none.
    pub is_opened: bool,
    /// Committed events that reconcile has yet to invoke hooks for.
    pub noticed: Vec<Event>,
    /// The timer that ends the process of an idle agent.
    pub sleeper: Option<AbortHandle>,
    /// The state may differ from the journal: the next lock reloads it.
    stale: bool,
}

/// A connection to the runtime.
pub struct Connection {
    /// Distinguishes this connection from later ones of the same agent.
    pub number: u64,
    pub down: mpsc::UnboundedSender<Down>,
    /// Dropping it closes the connection. A runtime that still needs the daemon reconnects.
    pub _open: oneshot::Sender<()>,
}

impl AgentHandle {
    /// Opens an existing agent.
    pub async fn open(
        store: &Arc<dyn Store>,
        claims: &Arc<Claims>,
        id: AgentId,
        env: Arc<Env>,
    ) -> Result<Self> {
        let mut loaded = store.load(id).await.map_err(|error| of_store(&error))?;
        if loaded.damage.is_some() {
            // Claiming the agent moves the damaged tail to quarantine; after that the agent can be used.
            claims.lost(id);
            match claims.fence(id, loaded.state.head).await {
                // In a read-only home, the events before the damage can still be read.
                Ok(_)
                | Err(agentd_store::Error::Damaged { .. } | agentd_store::Error::ReadOnly { .. }) =>
                    {}
                Err(error) => return Err(of_store(&error)),
            }
            loaded = store.load(id).await.map_err(|error| of_store(&error))?;
        }
        let appended = loaded.source.map(|source| (source.incarnation, source.n));
        let handle = Self::make(store, claims, id, env);
        {
            let mut inner = handle.inner.lock().await;
            inner.summary = Some((loaded.state.head, view::summary(&loaded.window)));
            inner.state = loaded.state;
            inner.appended = appended.unwrap_or_default();
        }
        Ok(handle)
    }

    /// A handle for an agent that is about to be created.
    pub fn make(store: &Arc<dyn Store>, claims: &Arc<Claims>, id: AgentId, env: Arc<Env>) -> Self {
        Self {
            id,
            store: Arc::clone(store),
            claims: Arc::clone(claims),
            inner: Mutex::new(Inner {
                state: AgentState::new(id),
                link: link::Daemon::default(),
                down: None,
                process: None,
                starts: Starts::default(),
                env,
                keys: Vec::new(),
                given: None,
                proof: None,
                appended: Default::default(),
                summary: None,
                resetting: false,
                reporting: false,
                wanted: false,
                awaiting_hooks: 0,
                is_opened: false,
                noticed: Vec::new(),
                sleeper: None,
                stale: false,
            }),
            changes: watch::channel(0).0,
            deltas: broadcast::channel(DELTAS).0,
        }
    }

    pub async fn lock(&self) -> AgentGuard<'_> {
        let inner = self.inner.lock().await;
        let mut guard = AgentGuard {
            handle: self,
            inner,
        };
        if guard.stale {
            guard.reload().await;
        }
        guard
    }

    /// Whether no process runs the agent and no task works on it: then the handle may be dropped.
    pub fn is_idle(&self) -> bool {
        let inner = self.inner.try_lock();
        inner.is_ok_and(|inner| {
            let is_idle = inner.process.is_none() && !inner.state.needs_process();
            let is_busy = inner.resetting || inner.reporting || inner.state.owes_report();
            is_idle && !is_busy && inner.awaiting_hooks == 0
        })
    }

    pub fn deltas(&self) -> broadcast::Receiver<Delta> {
        self.deltas.subscribe()
    }

    pub fn say(&self, delta: Delta) {
        // An error means that no client is watching.
        let _unwatched = self.deltas.send(delta);
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Wakes the tasks that wait for a change of the agent.
    pub fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Calls `look` after each change of the agent, until it returns a value.
    pub async fn until<T>(&self, mut look: impl FnMut(&mut AgentGuard<'_>) -> Option<T>) -> T {
        let mut changes = self.changes.subscribe();
        loop {
            changes.borrow_and_update();
            if let Some(found) = look(&mut self.lock().await) {
                return found;
            }
            // The handle owns the sender, so this cannot fail.
            let _never = changes.changed().await;
        }
    }

    /// The same with a timeout.
    pub async fn within<T>(
        &self,
        at_most: Duration,
        look: impl FnMut(&mut AgentGuard<'_>) -> Option<T>,
    ) -> Option<T> {
        tokio::time::timeout(at_most, self.until(look)).await.ok()
    }
}
