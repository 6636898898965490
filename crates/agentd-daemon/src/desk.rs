//! One agent at hand: its state as its journal has it, who runs it, and who watches.
//!
//! Everything that is written to an agent's journal goes through its desk, one thing at a time; so what
//! is decided by looking at the state still holds when it is written.

use crate::claims::Claims;
use crate::clock;
use crate::hooks::observe;
use crate::lifecycle::held;
use crate::problem::{Result, of_store};
use crate::supervisor::{Process, Starts};
use crate::view;
use agentd_client::api::{Delta, Env};
use agentd_client::{Kind, Problem};
use agentd_core::begin::Line;
use agentd_core::event::{Event, NewEvent, placed};
use agentd_core::id::{AgentId, Incarnation, Seq, TurnId};
use agentd_core::link::{self, Down, Order};
use agentd_core::state::AgentState;
use agentd_store::{Ack, Append, Fence, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard, broadcast, mpsc, oneshot, watch};
use tokio::task::AbortHandle;

/// Pieces of text that a slow reader may be behind; it gets the whole message afterwards.
const DELTAS: usize = 64;

pub struct Desk {
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

pub struct Guard<'a> {
    desk: &'a Desk,
    inner: MutexGuard<'a, Inner>,
}

impl Desk {
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
        let desk = Self::make(store, claims, id, env);
        {
            let mut inner = desk.inner.lock().await;
            inner.summary = Some((loaded.state.head, view::summary(&loaded.window)));
            inner.state = loaded.state;
            inner.appended = appended.unwrap_or_default();
        }
        Ok(desk)
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

    pub async fn lock(&self) -> Guard<'_> {
        let inner = self.inner.lock().await;
        let mut guard = Guard { desk: self, inner };
        if guard.stale {
            guard.reload().await;
        }
        guard
    }

    /// Whether nobody runs the agent and nobody waits for it: then it need not be at hand.
    pub fn is_quiet(&self) -> bool {
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
    pub async fn until<T>(&self, mut look: impl FnMut(&mut Guard<'_>) -> Option<T>) -> T {
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
        look: impl FnMut(&mut Guard<'_>) -> Option<T>,
    ) -> Option<T> {
        tokio::time::timeout(at_most, self.until(look)).await.ok()
    }
}

impl Drop for Guard<'_> {
    /// A task that panics while it has the agent may have left half of a change in memory.
    fn drop(&mut self) {
        self.inner.stale |= crate::spawn::is_dying();
    }
}

impl std::ops::Deref for Guard<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl std::ops::DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

impl Guard<'_> {
    /// The right to write the agent.
    pub async fn fence(&mut self) -> agentd_store::Result<Fence> {
        let head = self.state.head;
        let fence = self.desk.claims.fence(self.desk.id, head).await;
        self.stale |= fence.is_err();
        fence
    }

    /// After an append that failed: nobody knows, or somebody else knows better.
    fn doubt(&mut self, error: &agentd_store::Error) {
        use agentd_store::Error as Store;
        if matches!(error, Store::StaleFence { .. }) {
            self.desk.claims.lost(self.desk.id);
        }
        self.stale |= matches!(error, Store::Uncertain(_) | Store::StaleFence { .. });
    }

    /// Appends in one go.
    pub async fn append(&mut self, lines: Vec<Line>) -> Result<Vec<Event>> {
        self.append_in(None, lines).await
    }

    /// The same for what belongs to a turn.
    pub async fn append_in(
        &mut self,
        turn: Option<TurnId>,
        lines: Vec<Line>,
    ) -> Result<Vec<Event>> {
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        let at = clock::now();
        let events = lines.into_iter();
        let events = events.map(|(conversation, body)| NewEvent {
            at,
            conversation,
            turn,
            body,
        });
        let events: Vec<NewEvent> = events.collect();
        held::check(&self.state, &events)?;
        let fence = self.fence().await.map_err(|error| of_store(&error))?;
        let append = Append::new(fence, events);
        let committed = self.commit(append).await;
        committed.map_err(|error| of_store(&error))
    }

    /// Something about the current conversation.
    pub async fn note(
        &mut self,
        bodies: impl IntoIterator<Item = agentd_core::event::Body>,
    ) -> Result<Vec<Event>> {
        let current = self.state.tree.current();
        let Some(current) = current else {
            return Err(Problem::new(
                Kind::Conflict,
                "the agent has no conversation",
            ));
        };
        let lines = bodies.into_iter().map(|body| (current, body));
        self.append(lines.collect()).await
    }

    /// Commits what a runtime or the daemon itself has to say, takes it in, and passes it on. Events that
    /// had been committed before come back as none.
    pub async fn commit(&mut self, append: Append) -> agentd_store::Result<Vec<Event>> {
        let events = append.events.clone();
        let ack = match self.desk.store.append(append).await {
            Ok(ack) => ack,
            Err(error) => {
                self.doubt(&error);
                return Err(error);
            }
        };
        let Ack::Committed { first, .. } = ack else {
            return Ok(Vec::new());
        };
        let placed = self.take_in(events, first);
        if let Some(down) = self.link.committed(None, &placed) {
            self.tell(down);
        }
        Ok(placed)
    }

    /// The same for what the runtime itself appends: it hears where its events are, and not the events.
    pub async fn commit_own(&mut self, append: link::Append) -> agentd_store::Result<Option<Down>> {
        let n = append.n;
        let source = agentd_store::Source {
            incarnation: append.incarnation,
            n,
        };
        let events = append.events.clone();
        let append = Append {
            source: Some(source),
            ends: append.ends,
            ..Append::new(self.fence().await?, append.events)
        };
        let first = match self.desk.store.append(append).await {
            Ok(Ack::Committed { first, .. }) => first,
            Ok(Ack::Repeated { place }) => {
                return Ok(place.map(|(first, _)| Down::Appended { n, first }));
            }
            Err(error) => {
                self.doubt(&error);
                return Err(error);
            }
        };
        self.appended = (source.incarnation, n);
        let placed = self.take_in(events, first);
        Ok(self.link.committed(Some(n), &placed))
    }

    /// They are on disk, from there on.
    fn take_in(&mut self, events: Vec<NewEvent>, first: Seq) -> Vec<Event> {
        let placed = placed(events, self.desk.id, first);
        for event in &placed {
            self.state.apply(event);
        }
        if placed
            .iter()
            .any(|event| observe::is_of_interest(event.kind()))
        {
            self.noticed.extend(placed.iter().cloned());
        }
        self.desk.changed();
        placed
    }

    pub fn tell(&self, down: Down) {
        if let Some(connection) = &self.inner.down {
            // A connection that is breaking says so itself.
            let _broken = connection.down.send(down);
        }
    }

    pub fn order(&self, order: Order) {
        self.tell(Down::Order { order, turn: None });
    }

    /// One that is about this turn, and no other.
    pub fn order_turn(&self, order: Order, turn: TurnId) {
        let turn = Some(turn);
        self.tell(Down::Order { order, turn });
    }

    pub fn changed(&self) {
        self.desk.changed();
    }

    /// The store writes to the agent's journal by itself: whoever has the agent next reads it again.
    pub fn written_elsewhere(&mut self) {
        self.stale = true;
    }

    async fn reload(&mut self) {
        match self.desk.store.load(self.desk.id).await {
            Ok(loaded) => {
                self.state = loaded.state;
                let source = loaded.source.map(|source| (source.incarnation, source.n));
                self.appended = source.unwrap_or_default();
                self.stale = false;
                // Whoever was told less hears the rest after the next greeting.
                self.inner.down = None;
                self.link.disconnected();
            }
            Err(error) => tracing::warn!(agent = %self.desk.id, %error, "cannot be read again"),
        }
    }
}
