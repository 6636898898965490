//! The follower: a thread that reads the journal and maintains derived data in another file. An append
//! never waits for it.

mod index;
mod take;

use super::connect::{self, empty_log};
use super::derived::Derived;
use super::open;
use super::readers::Databases;
use super::sql_error::is_corrupt;
use super::{Options, snapshot};
use crate::error::{Disk, Error, Result};
use agentd_core::id::{AgentId, ConversationId, Seq};
use rusqlite::{Transaction, TransactionBehavior};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Events per round.
const BATCH: usize = 2048;
/// How long to wait after a commit, so that the next ones are indexed in the same round: large steps are cheaper.
const LINGER: Duration = Duration::from_millis(250);
/// The niceness of this thread: other threads have priority.
const NICENESS: i32 = 19;
/// While there is more to follow, the thread sleeps this many times as long as the last round took: appends
/// have priority.
const REST: u32 = 4;
/// How often a purge checks whether readers have released the log.
const SCRUB_EVERY: Duration = Duration::from_millis(20);
/// The delay after a disk failure.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a purge waits for readers to release the log.
const SCRUB_WAIT: Duration = Duration::from_secs(30);

type Reply = oneshot::Sender<Result<()>>;

enum Command {
    /// There may be new events in the journal.
    Wake,
    WaitCaughtUp(Reply),
    Checkpoint(Reply),
    Forget {
        agent: AgentId,
        conversation: ConversationId,
        reply: Reply,
    },
    /// A purge is over.
    Resume,
    /// A reader has found damage in the derived data, with this error.
    Renew(Error, Reply),
    Quit,
}

/// Wakes the follower; cheap to call repeatedly.
#[derive(Clone)]
pub struct Waker {
    commands: mpsc::Sender<Command>,
    awake: Arc<AtomicBool>,
}

impl Waker {
    pub fn wake(&self) {
        if !self.awake.swap(true, Ordering::AcqRel) {
            // A follower that has quit needs no waking.
            let _quit = self.commands.send(Command::Wake);
        }
    }
}

pub struct Follower {
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// While this exists the follower is paused: text that is about to be purged must not get into
/// the index again.
pub struct Forgetting(Waker);

impl Drop for Forgetting {
    fn drop(&mut self) {
        let _quit = self.0.commands.send(Command::Resume);
    }
}

impl Follower {
    pub fn start(options: &Options) -> Result<Self> {
        let is_new = is_empty(options)? && !options.derived().exists();
        let (commands, queue) = mpsc::channel();
        let waker = Waker {
            commands,
            awake: Arc::default(),
        };
        let thread = Thread {
            options: options.clone(),
            databases: None,
            reach: HashMap::new(),
            awake: Arc::clone(&waker.awake),
            forgetting: 0,
            waiting: Vec::new(),
        };
        if !is_new {
            waker.wake();
        }
        Ok(Self {
            waker,
            thread: Some(connect::spawn("follower", move || {
                // Applies to this thread only. If it is not permitted, appends are slower while the follower works.
                let _not_allowed = rustix::process::setpriority_process(None, NICENESS);
                thread.run(&queue);
            })?),
        })
    }

    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    pub async fn wait_caught_up(&self) -> Result<()> {
        self.ask(Command::WaitCaughtUp).await
    }

    pub async fn checkpoint(&self) -> Result<()> {
        self.ask(Command::Checkpoint).await
    }

    /// Rebuilds the derived data if it is really damaged, and waits until it has caught up with the journal.
    pub async fn renew_after(&self, error: Error) -> Result<()> {
        self.ask(|reply| Command::Renew(error, reply)).await
    }

    /// Removes a conversation's text from the index and deletes the agent's snapshots. The follower is paused until the
    /// returned value is dropped.
    pub async fn forget(&self, agent: AgentId, conversation: ConversationId) -> Result<Forgetting> {
        let forgetting = Forgetting(self.waker.clone());
        self.ask(|reply| Command::Forget {
            agent,
            conversation,
            reply,
        })
        .await?;
        Ok(forgetting)
    }

    async fn ask(&self, command: impl FnOnce(Reply) -> Command) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        let sent = self.waker.commands.send(command(reply));
        sent.map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _quit_before = self.waker.commands.send(Command::Quit);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

/// Whether the journal has no event.
fn is_empty(options: &Options) -> Result<bool> {
    let journal = connect::reader(options, &options.journal())?;
    let sql = "SELECT max(position) IS NULL FROM event";
    match journal.query_row(sql, [], |row| row.get(0)) {
        // A journal with an unreadable page is not empty.
        Err(error) if is_corrupt(&error) => Ok(false),
        empty => Ok(empty?),
    }
}

struct Thread {
    options: Options,
    /// None until there is something to follow: a short-lived store needs no derived file.
    databases: Option<Databases>,
    /// The last event that each agent's snapshots include, as far as this thread knows.
    reach: HashMap<AgentId, Seq>,
    awake: Arc<AtomicBool>,
    /// Purges in progress.
    forgetting: usize,
    /// Callers that wait until everything has caught up, after the purges are over.
    waiting: Vec<Reply>,
}

impl Thread {
    fn run(mut self, queue: &mpsc::Receiver<Command>) {
        // When to run the next round, if no command comes first.
        let mut look_in: Option<Duration> = None;
        loop {
            let command = match look_in {
                Some(wait) if self.forgetting == 0 => queue.recv_timeout(wait),
                _ => queue.recv().map_err(Into::into),
            };
            let command = match command {
                Ok(command) => command,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    look_in = self.look();
                    continue;
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            };
            match command {
                Command::Wake => look_in = look_in.or(Some(LINGER)),
                Command::WaitCaughtUp(reply) => self.waiting.push(reply),
                Command::Checkpoint(reply) => {
                    let _gone = reply.send(self.empty_log());
                }
                Command::Forget {
                    agent,
                    conversation,
                    reply,
                } => {
                    self.forgetting += 1;
                    let _gone = reply.send(self.forget(agent, conversation));
                }
                Command::Resume => {
                    self.forgetting = self.forgetting.saturating_sub(1);
                    look_in = Some(Duration::ZERO);
                }
                Command::Renew(error, reply) => {
                    let renewed = self.renew_after(error);
                    look_in = Some(Duration::ZERO);
                    if renewed.is_ok() && self.forgetting == 0 {
                        self.waiting.push(reply);
                    } else {
                        let _gone = reply.send(renewed);
                    }
                }
                Command::Quit => return,
            }
            if self.forgetting == 0 && !self.waiting.is_empty() {
                self.wait_caught_up();
            }
        }
    }

    /// One round. Returns when to run the next one.
    fn look(&mut self) -> Option<Duration> {
        // Before the round: a commit during the round wakes the thread again.
        self.awake.store(false, Ordering::Release);
        let begun = Instant::now();
        match self.follow() {
            Ok(true) => Some(begun.elapsed() * REST),
            Ok(false) => None,
            Err(error) => {
                tracing::warn!(%error, "cannot update search and snapshots: retrying");
                Some(PAUSE)
            }
        }
    }

    fn wait_caught_up(&mut self) {
        for reply in std::mem::take(&mut self.waiting) {
            let caught_up = self.catch_up();
            let _gone = reply.send(caught_up);
        }
    }

    fn catch_up(&mut self) -> Result<()> {
        while self.follow()? {}
        Ok(())
    }

    /// Processes the next part of the journal. True if there is more.
    fn follow(&mut self) -> Result<bool> {
        match self.try_follow() {
            Err(error) if open::is_useless(&error) => {
                self.renew_after(error)?;
                Ok(true)
            }
            followed => followed,
        }
    }

    /// Runs `work` with the databases, which are created if they are missing.
    fn with<T>(&mut self, work: impl FnOnce(&mut Self, &mut Databases) -> Result<T>) -> Result<T> {
        let mut databases = match self.databases.take() {
            Some(databases) => databases,
            None => Databases {
                derived: Derived::open(open::derived(&self.options)?),
                journal: connect::reader(&self.options, &self.options.journal())?,
            },
        };
        let done = work(self, &mut databases);
        self.databases = Some(databases);
        done
    }

    fn empty_log(&self) -> Result<()> {
        if let Some(databases) = &self.databases {
            empty_log(databases.derived.own()?)?;
        }
        Ok(())
    }

    fn try_follow(&mut self) -> Result<bool> {
        self.with(Self::follow_with)
    }

    fn follow_with(&mut self, databases: &mut Databases) -> Result<bool> {
        // The lock comes first: another process may follow too, and no event may be indexed twice.
        let derived = databases.derived.own()?;
        let transaction = Transaction::new_unchecked(derived, TransactionBehavior::Immediate)?;
        let stretch = index::advance(databases, BATCH)?;
        let more = stretch.is_cut || index::refill(databases, BATCH)?;
        transaction.commit()?;
        let mut heads = HashMap::new();
        for (agent, row) in &stretch.events {
            heads.insert(*agent, row.event.seq);
        }
        self.take_snapshots(databases, heads)?;
        Ok(more)
    }

    /// Rebuilds the derived file if it is damaged: it is only a cache. Otherwise the journal could not be
    /// read, and a rebuild would not help.
    fn renew_after(&mut self, error: Error) -> Result<()> {
        self.with(|thread, databases| {
            if connect::is_sound(databases.derived.own()?) {
                return Err(error);
            }
            tracing::warn!(%error, "derived.db is damaged: rebuilding search and snapshots");
            thread.reach.clear();
            open::renew(databases.derived.own_mut()?)
        })
    }

    fn take_snapshots(
        &mut self,
        databases: &Databases,
        heads: HashMap<AgentId, Seq>,
    ) -> Result<()> {
        for (agent, head) in heads {
            let derived = databases.derived.own()?;
            let reach = match self.reach.get(&agent) {
                Some(reach) if *reach <= head => *reach,
                _ => snapshot::reach(derived, agent, head)?,
            };
            self.reach.insert(agent, reach);
            if head.0.saturating_sub(reach.0) < self.options.snapshot_every.max(1) {
                continue;
            }
            match take::take(databases, agent) {
                Ok(()) => drop(self.reach.insert(agent, head)),
                // An agent that cannot be read must not block the snapshots of the others.
                Err(error @ Error::Damaged { .. }) => {
                    tracing::warn!(%agent, %error, "snapshot skipped: journal damaged");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn forget(&mut self, agent: AgentId, conversation: ConversationId) -> Result<()> {
        self.reach.remove(&agent);
        match self.drop_words(agent, conversation) {
            Err(error) if open::is_useless(&error) => self.renew_after(error)?,
            dropped => dropped?,
        }
        let deadline = Instant::now() + SCRUB_WAIT;
        self.with(|_, databases| {
            while !empty_log(databases.derived.own()?)? {
                if Instant::now() > deadline {
                    return Err(Error::Unavailable(Disk::Locked));
                }
                std::thread::sleep(SCRUB_EVERY);
            }
            Ok(())
        })
    }

    fn drop_words(&mut self, agent: AgentId, conversation: ConversationId) -> Result<()> {
        self.with(|_, databases| {
            let derived = databases.derived.own()?;
            let transaction = Transaction::new_unchecked(derived, TransactionBehavior::Immediate)?;
            index::forget(databases, agent, conversation)?;
            snapshot::forget(derived, agent)?;
            transaction.commit()?;
            Ok(())
        })
    }
}
