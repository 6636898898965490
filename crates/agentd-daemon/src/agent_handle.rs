//! One agent at hand: its state as its journal has it, who runs it, and who watches.
//!
//! Everything that is written to an agent's journal goes through its handle, one thing at a time; so what
//! is decided by looking at the state still holds when it is written.

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

/// Pieces of text that a slow reader may be behind; it gets the whole message afterwards.
const DELTAS: usize = 64;

pub struct AgentHandle {
    pub id: AgentId,
    store: Arc<dyn Store>,
    claims: Arc<Claims>,
    inner: Mutex<Inner>,
    changes: watch::Sender<u64>,
    deltas: broadcast::Sender<Delta>,
}

pub struct Inner {
    pub state: AgentState,
    pub link: link::Daemon,
    pub down: Option<Connection>,
    pub process: Option<Process>,
    pub starts: Starts,
    pub env: Arc<Env>,
    /// Keys that its processes found elsewhere: in a file, or by a command.
    pub keys: Vec<String>,
    /// What the newest process was given.
    pub given: Option<Arc<Env>>,
    /// The digest of the secret that the newest process was given, where this daemon started it.
    pub proof: Option<String>,
    /// The newest append of the newest incarnation.
    pub appended: (Incarnation, u64),
    /// The beginning of the last answer, and how far the journal went then. To look it up costs the window.
    pub summary: Option<(Seq, String)>,
    /// A task carries the reset on.
    pub resetting: bool,
    /// A task tells its parent how it ended.
    pub reporting: bool,
    /// It is to have a process, though there is nothing to do.
    pub wanted: bool,
    /// Hooks are told that it begins or goes on: no process before they have spoken.
    pub awaiting_hooks: u32,
    /// SessionStart hooks were told of its first conversation, or there was nothing to tell.
    pub is_opened: bool,
    /// What was written that hooks are to hear of.
    pub noticed: Vec<Event>,
    /// Puts it to sleep in a while.
    pub sleeper: Option<AbortHandle>,
    /// What is in memory may not be what is on disk.
    stale: bool,
}

/// The way to the runtime.
pub struct Connection {
    pub number: u64,
    pub down: mpsc::UnboundedSender<Down>,
    /// Let go of, it ends the connection: a runtime that still wants something comes again.
    pub _open: oneshot::Sender<()>,
}

impl AgentHandle {
    /// An agent that is there.
    pub async fn open(
        store: &Arc<dyn Store>,
        claims: &Arc<Claims>,
        id: AgentId,
        env: Arc<Env>,
    ) -> Result<Self> {
        let mut loaded = store.load(id).await.map_err(|error| of_store(&error))?;
        if loaded.damage.is_some() {
            // Whoever owns it has the damage set aside, and can go on.
            claims.lost(id);
            match claims.fence(id, loaded.state.head).await {
                // In a home that is only read, what comes before the damage can be looked at.
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

    /// For an agent that is about to be.
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

    /// Whether nobody runs the agent and nobody waits for it: then it need not be at hand.
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
        // Nobody may be watching.
        let _nobody = self.deltas.send(delta);
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Something about the agent is different now.
    pub fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Looks at the agent each time that something changes, until there is an answer.
    pub async fn until<T>(&self, mut look: impl FnMut(&mut AgentGuard<'_>) -> Option<T>) -> T {
        let mut changes = self.changes.subscribe();
        loop {
            changes.borrow_and_update();
            if let Some(found) = look(&mut self.lock().await) {
                return found;
            }
            // The sender is ours: it does not go away.
            let _never = changes.changed().await;
        }
    }

    /// The same, for so long.
    pub async fn within<T>(
        &self,
        at_most: Duration,
        look: impl FnMut(&mut AgentGuard<'_>) -> Option<T>,
    ) -> Option<T> {
        tokio::time::timeout(at_most, self.until(look)).await.ok()
    }
}
