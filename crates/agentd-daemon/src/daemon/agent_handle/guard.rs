//! A locked agent: its state can be read and its journal written.

use super::{AgentHandle, held};
use crate::clock;
use crate::daemon::agent::Inner;
use crate::error::{Error, Kind, Result};
use agentd_client::api::Env;
use agentd_core::begin::Line;
use agentd_core::event::{self, Event, NewEvent, placed};
use agentd_core::id::{Seq, TurnId};
use agentd_core::link::{self, Down, Order};
use agentd_core::secrets::Secrets;
use agentd_failpoint as failpoint;
use agentd_process::Identity;
use agentd_store::{Ack, Append, Fence, KeepFiles};
use tokio::sync::MutexGuard;

pub struct AgentGuard<'a> {
    pub handle: &'a AgentHandle,
    pub(super) inner: MutexGuard<'a, Inner>,
}

impl Drop for AgentGuard<'_> {
    /// A task that panics while it holds the lock may have left a partial change in memory: the state is reloaded.
    fn drop(&mut self) {
        self.inner.stale |= crate::spawn::is_dying();
    }
}

impl std::ops::Deref for AgentGuard<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl std::ops::DerefMut for AgentGuard<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

/// Whether an event of this kind invokes hooks that no caller waits for.
const fn invokes_hooks(kind: event::Kind) -> bool {
    use event::Kind;
    matches!(
        kind,
        Kind::TurnEnded | Kind::TurnPaused | Kind::ApprovalRequested | Kind::AgentFailed
    )
}

impl AgentGuard<'_> {
    /// Brings the agent's process and the work on it in line with its state. Called after each change.
    pub fn reconcile(&mut self) {
        self.handle.daemon.supervisor.reconcile(self);
    }

    /// Watches a process that runs the agent, unless it is watched already.
    pub fn adopt(&mut self, process: Identity) {
        self.handle.daemon.supervisor.adopt(self, process);
    }

    /// Tells the process to finish its current step and to end.
    pub fn end_process(&mut self) {
        let is_connected = self.down.is_some();
        let Some(process) = &mut self.process else {
            return;
        };
        let identity = process.identity;
        if std::mem::replace(&mut process.is_stopping, true) && is_connected {
            return;
        }
        match identity {
            _ if is_connected => self.order(Order::Stop),
            // A process without a connection can only be reached by a signal.
            Some(identity) => self.handle.daemon.supervisor.terminate(identity),
            None => {}
        }
    }

    /// Tells the process to end without waiting for the model, even if it is already ending.
    pub fn leave_process(&mut self) {
        if self.down.is_some() && self.process.is_some() {
            self.order(Order::Leave);
        }
        self.end_process();
    }

    /// Adds the variables that a caller sent, for the agent's next process.
    pub fn merge_env(&mut self, brought: &Env) {
        let envs = &self.handle.daemon.envs;
        envs.merge(self.handle.id, brought);
        self.env = envs.of(self.handle.id);
    }

    /// Every secret that is known of the agent. None of them may be in anything that is stored or shown.
    pub fn secrets(&self) -> Secrets {
        if failpoint::injected_bug("keys_unredacted") {
            return Secrets::default();
        }
        let daemon = &self.handle.daemon;
        daemon.secrets_in(&self.env).and(self.keys.iter().cloned())
    }

    /// An error if the agent is held.
    pub fn check_released(&self) -> Result<()> {
        match self.state.is_held() {
            true => Err(self.held()),
            false => Ok(()),
        }
    }

    /// An error if the agent is archived.
    pub fn check_active(&self) -> Result<()> {
        if !self.state.archived {
            return Ok(());
        }
        let what = format!("`{}` is archived", self.state.name);
        let error = Error::new(Kind::Refused, what);
        let current = self.state.tree.current_conversation();
        Err(match current.is_some_and(|current| current.purged) {
            true => error.because("its conversation was purged, so that it cannot be restored"),
            false => error.next(format!("agentd restore {}", self.state.id)),
        })
    }

    /// The error of a request that the agent refuses because it is held.
    pub fn held(&self) -> Error {
        held::error(&self.state)
    }

    /// The agent's fence, which every append needs.
    pub async fn fence(&mut self) -> agentd_store::Result<Fence> {
        let head = self.state.head;
        let claims = &self.handle.daemon.claims;
        let fence = claims.fence(self.handle.id, head).await;
        self.stale |= fence.is_err();
        fence
    }

    /// Called after a failed append. If its outcome is unknown or the fence was lost, the next lock reloads the state
    /// from the store.
    fn mark_stale(&mut self, error: &agentd_store::Error) {
        use agentd_store::Error as Store;
        if matches!(error, Store::StaleFence { .. }) {
            self.handle.daemon.claims.lost(self.handle.id);
        }
        self.stale |= matches!(error, Store::Uncertain(_) | Store::StaleFence { .. });
    }

    /// Appends in one transaction.
    pub async fn append(&mut self, lines: Vec<Line>) -> Result<Vec<Event>> {
        self.append_in(None, lines).await
    }

    /// The same for events that belong to a turn.
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
        let append = Append::new(self.fence().await?, events);
        Ok(self.commit(append).await?)
    }

    /// Appends to the current conversation.
    pub async fn note(
        &mut self,
        bodies: impl IntoIterator<Item = event::Body>,
    ) -> Result<Vec<Event>> {
        let current = self.state.tree.current();
        let Some(current) = current else {
            let what = "the agent has no conversation";
            return Err(Error::new(Kind::Conflict, what));
        };
        let lines = bodies.into_iter().map(|body| (current, body));
        self.append(lines.collect()).await
    }

    /// Commits the daemon's own events, folds them, and sends them to the runtime. Returns no events if the append was
    /// committed before.
    pub async fn commit(&mut self, append: Append) -> agentd_store::Result<Vec<Event>> {
        let events = append.events.clone();
        let ack = match self.handle.daemon.store.append(append).await {
            Ok(ack) => ack,
            Err(error) => {
                self.mark_stale(&error);
                return Err(error);
            }
        };
        let Ack::Committed { first, .. } = ack else {
            return Ok(Vec::new());
        };
        let placed = self.take_in(events, first);
        if let Some(down) = self.link.committed(None, &link::without_files(&placed)) {
            self.tell(down);
        }
        Ok(placed)
    }

    /// The same for a runtime's append. Returns the message that tells the runtime the position of its events; the
    /// runtime has the events themselves.
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
        let first = match self.handle.daemon.store.append(append).await {
            Ok(Ack::Committed { first, .. }) => first,
            Ok(Ack::Repeated { place }) => {
                return Ok(place.map(|(first, _)| Down::Appended { n, first }));
            }
            Err(error) => {
                self.mark_stale(&error);
                return Err(error);
            }
        };
        self.appended = (source.incarnation, n);
        let placed = self.take_in(events, first);
        Ok(self.link.committed(Some(n), &placed))
    }

    /// Deletes the oldest contents of files if the agent keeps more than its limit. Called after each append that may keep
    /// a file. What a restore in progress needs is not deleted.
    pub async fn limit_files(&mut self) {
        let limits = &self.state.spec.limits;
        let limit = limits.file_history_bytes();
        let keep = KeepFiles {
            bytes: limits.file_history_left(),
            largest: limit,
        };
        let files = &self.state.files;
        if files.kept_bytes <= limit || files.restoring.is_some() {
            return;
        }
        if let Err(error) = self.purge_files(keep).await {
            // The next append tries it again.
            tracing::warn!(agent = %self.handle.id, %error, "old contents of files not deleted");
        }
    }

    async fn purge_files(&mut self, keep: KeepFiles) -> agentd_store::Result<()> {
        let fence = self.fence().await?;
        let store = &self.handle.daemon.store;
        let purged = match store.purge_files(fence, keep, clock::now()).await {
            Ok(purged) => purged,
            Err(error) => {
                self.mark_stale(&error);
                return Err(error);
            }
        };
        if let Some(purged) = purged {
            self.state.apply(&purged);
            self.handle.changed();
            if let Some(down) = self.link.committed(None, &[purged]) {
                self.tell(down);
            }
        }
        Ok(())
    }

    /// Folds events that are on disk, from `first` on.
    fn take_in(&mut self, events: Vec<NewEvent>, first: Seq) -> Vec<Event> {
        let placed = placed(events, self.handle.id, first);
        for event in &placed {
            self.state.apply(event);
        }
        if placed.iter().any(|event| invokes_hooks(event.kind())) {
            self.noticed.extend(placed.iter().cloned());
        }
        self.handle.changed();
        placed
    }

    pub fn tell(&self, down: Down) {
        if let Some(connection) = &self.inner.down {
            // If the connection is broken, the task that reads it notices.
            let _broken = connection.down.send(down);
        }
    }

    pub fn order(&self, order: Order) {
        self.tell(Down::Order { order, turn: None });
    }

    /// An order for this turn only.
    pub fn order_turn(&self, order: Order, turn: TurnId) {
        let turn = Some(turn);
        self.tell(Down::Order { order, turn });
    }

    pub fn changed(&self) {
        self.handle.changed();
    }

    /// Called when the store itself appends to the agent's journal (purge, import): the next lock reloads the state.
    pub fn written_elsewhere(&mut self) {
        self.stale = true;
    }

    pub(super) async fn reload(&mut self) {
        match self.handle.daemon.store.load(self.handle.id).await {
            Ok(loaded) => {
                self.take_over(loaded);
                self.stale = false;
                // The runtime gets the events that it missed when it reconnects.
                self.inner.down = None;
                self.link.disconnected();
            }
            Err(error) => tracing::warn!(agent = %self.handle.id, %error, "agent not reloaded"),
        }
    }
}
