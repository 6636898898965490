//! The follower: a thread behind the journal that keeps what is derived, on the side. An append
//! never waits for it.

pub mod index;
pub mod snapshot;

use super::connect::{self, Durability};
use super::readers::Databases;
use super::writer::empty_log;
use super::{Options, read};
use crate::error::{Error, Result};
use agentd_core::id::{AgentId, ConversationId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Events that one round takes.
const BATCH: i64 = 512;
/// Commits that come close together are followed together.
const LINGER: Duration = Duration::from_millis(20);
/// How long to leave the disk alone after a failure.
const PAUSE: Duration = Duration::from_millis(500);

pub enum Command {
    /// There may be more in the journal.
    Wake,
    Settle(oneshot::Sender<Result<()>>),
    Forget {
        agent: AgentId,
        conversation: ConversationId,
        reply: oneshot::Sender<Result<()>>,
    },
    Quit,
}

/// Wakes the follower; cheap to call again and again.
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

impl Follower {
    pub fn start(options: Options) -> Result<Self> {
        let derived = connect::writer(&options, &options.derived(), Durability::Derived)?;
        let journal = connect::reader(&options, &options.journal())?;
        let (commands, queue) = mpsc::channel();
        let waker = Waker {
            commands,
            awake: Arc::default(),
        };
        let thread = Thread {
            snapshot_every: options.snapshot_every.max(1),
            databases: Databases { journal, derived },
            since_snapshot: HashMap::new(),
            awake: Arc::clone(&waker.awake),
        };
        waker.wake();
        Ok(Self {
            waker,
            thread: Some(std::thread::spawn(move || thread.run(&queue))),
        })
    }

    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    pub async fn settle(&self) -> Result<()> {
        self.ask(Command::Settle).await
    }

    /// Takes a conversation's words out of the index and its snapshots away.
    pub async fn forget(&self, agent: AgentId, conversation: ConversationId) -> Result<()> {
        self.ask(|reply| Command::Forget {
            agent,
            conversation,
            reply,
        })
        .await
    }

    async fn ask(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<()>>) -> Command,
    ) -> Result<()> {
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

struct Thread {
    snapshot_every: u64,
    databases: Databases,
    /// Events of each agent since its last snapshot, as far as this thread has seen.
    since_snapshot: HashMap<AgentId, u64>,
    awake: Arc<AtomicBool>,
}

impl Thread {
    fn run(mut self, queue: &mpsc::Receiver<Command>) {
        let mut more = false;
        loop {
            let command = match more {
                true => queue.recv_timeout(Duration::ZERO).unwrap_or(Command::Wake),
                false => match queue.recv() {
                    Ok(command) => command,
                    Err(_) => return,
                },
            };
            match command {
                Command::Wake => {
                    self.awake.store(false, Ordering::Release);
                    match self.follow() {
                        Ok(full) => {
                            more = full;
                            if !full {
                                std::thread::sleep(LINGER);
                            }
                        }
                        Err(error) => {
                            tracing::warn!(%error, "search and snapshots are behind");
                            std::thread::sleep(PAUSE);
                            more = true;
                        }
                    }
                }
                Command::Settle(reply) => {
                    let _gone = reply.send(self.catch_up());
                }
                Command::Forget {
                    agent,
                    conversation,
                    reply,
                } => {
                    let _gone = reply.send(self.forget(agent, conversation));
                }
                Command::Quit => return,
            }
        }
    }

    fn catch_up(&mut self) -> Result<()> {
        while self.follow()? {}
        Ok(())
    }

    /// Takes in some more of the journal. True where there is still more.
    fn follow(&mut self) -> Result<bool> {
        let from = index::position(&self.databases.derived)?;
        let mut rows = Vec::new();
        read::each_after(&self.databases.journal, from, BATCH, |agent, row| {
            rows.push((agent, row));
            Ok(())
        })?;
        let full = rows.len() as i64 == BATCH;
        if rows.is_empty() {
            return Ok(false);
        }
        for (agent, _) in &rows {
            *self.since_snapshot.entry(*agent).or_default() += 1;
        }
        index::add(&self.databases, rows)?;
        self.take_snapshots()?;
        Ok(full)
    }

    fn take_snapshots(&mut self) -> Result<()> {
        let every = self.snapshot_every;
        let due = self.since_snapshot.iter().filter(|(_, n)| **n >= every);
        let due: Vec<AgentId> = due.map(|(agent, _)| *agent).collect();
        for agent in due {
            self.since_snapshot.remove(&agent);
            snapshot::take(&self.databases, agent)?;
        }
        Ok(())
    }

    fn forget(&mut self, agent: AgentId, conversation: ConversationId) -> Result<()> {
        // Only what is in the index can be taken out of it.
        self.catch_up()?;
        let derived = self.databases.derived.unchecked_transaction()?;
        index::forget(&self.databases, agent, conversation)?;
        snapshot::forget(&self.databases.derived, agent)?;
        derived.commit()?;
        match empty_log(&self.databases.derived)? {
            true => Ok(()),
            false => Err(Error::Unavailable(crate::error::Disk::Locked)),
        }
    }
}
