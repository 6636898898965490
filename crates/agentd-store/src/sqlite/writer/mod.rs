//! The writer: one thread that takes the queued commands and commits them together.
//!
//! A refusal (a stale fence, a taken name) fails only its own caller. If the disk fails, the whole
//! group fails, and every caller in it gets its outcome.

mod append;
mod claim;
mod draft;
mod entries;
mod failure;
mod group;
mod purge;
mod purge_files;
mod reopen;
mod scrub;
mod waiting;

use super::connect;
use super::entry::Entry;
use super::follower::Forgetting;
use super::head::{Head, Tip};
use super::notify::Notify;
use super::readers::Databases;
use super::written::Written;
use super::{Options, import};
use crate::error::{Disk, Error, Result};
use crate::export::Checked;
use crate::rules::{self, purge::Loses};
use crate::store::*;
use agentd_core::event::Event;
use agentd_core::id::{AgentId, ConversationId};
use agentd_core::time::Timestamp;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

/// The maximum number of commands in one commit.
const GROUP: usize = 512;
/// How many folded agents the writer caches, at about 6 KB each.
const ENTRIES: usize = 1024;

type Reply<T> = oneshot::Sender<Result<T>>;

enum Command {
    Grouped(group::Grouped),
    Purge(purge::Order),
    PurgeFiles(purge_files::Order),
    Import {
        file: Checked,
        order: Import,
        reply: Reply<Imported>,
    },
    Checkpoint(Reply<()>),
}

pub struct Writer {
    /// None only while it is dropped: closing the channel ends the thread.
    commands: Option<mpsc::Sender<Command>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub fn start(
        options: Options,
        databases: Databases,
        head: Head,
        notify: Arc<Notify>,
    ) -> Result<Self> {
        let (commands, queue) = mpsc::channel(options.queue.max(1));
        let thread = Thread {
            options,
            databases: Some(databases),
            data_version: 0,
            entries: HashMap::new(),
            head,
            tips: Vec::new(),
            notify,
            purges: VecDeque::new(),
            scrubs: Vec::new(),
        };
        Ok(Self {
            commands: Some(commands),
            thread: Some(connect::spawn("writer", move || thread.run(queue))?),
        })
    }

    pub async fn claim(&self, agent: AgentId, owner: String) -> Result<Claim> {
        self.ask(|reply| {
            Command::Grouped(group::Grouped::Claim {
                agent,
                owner,
                reply,
            })
        })
        .await
    }

    pub async fn append(&self, append: Append) -> Result<Ack> {
        let prepared = append::prepare(append)?;
        let append = |reply| Command::Grouped(group::Grouped::Append { prepared, reply });
        let (ack, _written) = self.ask(append).await?;
        Ok(ack)
    }

    pub async fn write_draft(&self, fence: Fence, chunk: DraftChunk) -> Result<DraftAck> {
        rules::draft::check_size(&chunk)?;
        self.ask(|reply| {
            Command::Grouped(group::Grouped::Draft {
                fence,
                chunk,
                reply,
            })
        })
        .await
    }

    pub async fn purge(
        &self,
        fence: Fence,
        conversation: ConversationId,
        at: Timestamp,
        loses: Loses,
        forgetting: Forgetting,
    ) -> Result<Purge> {
        self.ask(|reply| {
            Command::Purge(purge::Order {
                fence,
                conversation,
                at,
                loses,
                forgetting,
                reply,
            })
        })
        .await
    }

    pub async fn purge_files(
        &self,
        fence: Fence,
        keep: KeepFiles,
        at: Timestamp,
    ) -> Result<Option<Event>> {
        self.ask(|reply| {
            Command::PurgeFiles(purge_files::Order {
                fence,
                keep,
                at,
                reply,
            })
        })
        .await
    }

    pub async fn import(&self, file: Checked, order: Import) -> Result<Imported> {
        self.ask(|reply| Command::Import { file, order, reply })
            .await
    }

    pub async fn checkpoint(&self) -> Result<()> {
        self.ask(Command::Checkpoint).await
    }

    /// Waits for space in the queue, then for the answer.
    async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let commands = self.commands.as_ref().ok_or(Error::Closed)?;
        let sent = commands.send(command(reply)).await;
        sent.map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            // Queued commands are committed before the thread ends.
            let _panicked = thread.join();
        }
    }
}

struct Thread {
    options: Options,
    /// None after a failure, until the files can be opened again.
    databases: Option<Databases>,
    /// SQLite's counter of commits by other connections; if it changes, the cached entries are stale.
    data_version: i64,
    entries: HashMap<AgentId, Entry>,
    head: Head,
    /// The last events of the current transaction, for the head, which is written after the commit.
    tips: Vec<Tip>,
    notify: Arc<Notify>,
    /// Purges whose text is still being deleted.
    purges: VecDeque<purge::Job>,
    /// Purges whose deleted text is still in the log.
    scrubs: Vec<scrub::Scrub>,
}

impl Thread {
    fn run(mut self, mut queue: mpsc::Receiver<Command>) {
        self.resume_purges();
        loop {
            let has_chores = !self.purges.is_empty() || !self.scrubs.is_empty();
            let first = match has_chores {
                true => queue.try_recv(),
                false => queue.blocking_recv().ok_or(TryRecvError::Disconnected),
            };
            match first {
                Ok(first) => self.take_in(first, &mut queue),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return,
            }
            // Also while commands keep arriving: a purge must make progress.
            self.do_chore();
        }
    }

    /// One step of the background work.
    fn do_chore(&mut self) {
        if !self.purges.is_empty() {
            self.purge_some();
        } else if !self.scrubs.is_empty() {
            self.scrub();
        }
    }

    /// Commits the queued commands: at most one group, and not beyond the first command that needs a transaction of its
    /// own. So this returns even if the queue never becomes empty.
    fn take_in(&mut self, first: Command, queue: &mut mpsc::Receiver<Command>) {
        let mut group = Vec::new();
        let mut next = Some(first);
        while let Some(command) = next {
            match command {
                Command::Grouped(grouped) => group.push(grouped),
                alone => {
                    self.commit_group(group);
                    self.alone(alone);
                    return;
                }
            }
            next = if group.len() < GROUP {
                queue.try_recv().ok()
            } else {
                None
            };
        }
        self.commit_group(group);
    }

    /// Runs a command that needs a transaction of its own.
    fn alone(&mut self, command: Command) {
        match command {
            Command::Grouped(grouped) => self.commit_group(vec![grouped]),
            Command::Purge(order) => self.begin_purge(order),
            Command::PurgeFiles(order) => self.purge_files(order),
            Command::Checkpoint(reply) => {
                let emptied = self.empty_log_now().map_err(Error::Unavailable);
                let _gone = reply.send(emptied.map(drop));
            }
            Command::Import { file, order, reply } => {
                let done = self.in_transaction(|thread, databases| {
                    import::import(databases, file, order, &mut thread.tips)
                });
                if done.is_ok() {
                    // The imported agent may have been cached before, as the ancestor of another one.
                    self.entries.clear();
                    self.notify.wake_all();
                }
                let _gone = reply.send(done);
            }
        }
    }

    /// Must be called after a commit and before the answers.
    fn record_head(&mut self) {
        if !self.tips.is_empty() {
            let tips = std::mem::take(&mut self.tips);
            self.head.record(tips);
        }
    }

    /// Runs `work` in its own transaction. `work` returns what it has written, which is looked up after a failed
    /// commit; if it returns `None`, a failed commit is reported as [`Error::Uncertain`].
    fn in_transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self, &Databases) -> Result<(T, Option<Written>)>,
    ) -> Result<T> {
        let databases = self.take_databases().map_err(Error::NotCommitted)?;
        let done = begin(&databases)
            .map_err(Error::NotCommitted)
            .and_then(|()| self.notice_others(&databases).map_err(Error::NotCommitted))
            .and_then(|()| work(self, &databases));
        match done {
            Ok((value, written)) => match commit(&databases) {
                Ok(()) => {
                    self.databases = Some(databases);
                    self.record_head();
                    Ok(value)
                }
                Err(disk) => {
                    drop(databases);
                    let tips = std::mem::take(&mut self.tips);
                    match written.and_then(|written| self.find_after_failure(written)) {
                        Some(true) => {
                            self.head.record(tips);
                            Ok(value)
                        }
                        Some(false) => Err(Error::NotCommitted(disk)),
                        None => Err(Error::Uncertain(disk)),
                    }
                }
            },
            Err(error) => {
                self.roll_back(databases);
                Err(match error {
                    Error::Unavailable(disk) => Error::NotCommitted(disk),
                    error => error,
                })
            }
        }
    }
}

fn begin(databases: &Databases) -> Result<(), Disk> {
    execute(databases, "BEGIN IMMEDIATE")
}

fn commit(databases: &Databases) -> Result<(), Disk> {
    execute(databases, "COMMIT")
}

/// A statement that every group needs, prepared once.
fn execute(databases: &Databases, statement: &str) -> Result<(), Disk> {
    databases
        .journal
        .prepare_cached(statement)
        .and_then(|mut statement| statement.execute([]))
        .map_err(Disk::from_sqlite)?;
    Ok(())
}
