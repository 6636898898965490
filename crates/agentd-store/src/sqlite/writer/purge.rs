//! A purge in small steps, so that appends do not wait for it: first the journal records the purge, then the
//! text is deleted, one range of events at a time.

use super::failure::Failure;
use super::scrub::Scrub;
use super::waiting::Waiting;
use super::{Reply, Thread, append};
use crate::error::{Error, Result};
use crate::rules::{self, purge::Loses};
use crate::sqlite::entry::Entry;
use crate::sqlite::follower::Forgetting;
use crate::sqlite::purge::{self, Deleted};
use crate::sqlite::readers::Databases;
use crate::sqlite::written::Written;
use crate::sqlite::{drafts, fold};
use crate::store::{Ack, Append, Fence, Purge};
use agentd_core::id::{AgentId, ConversationId, Seq};
use agentd_core::time::Timestamp;

/// How many sequence numbers one step covers, in one transaction.
const STRETCH: u64 = 1000;

/// A request to purge.
pub(super) struct Order {
    pub fence: Fence,
    pub conversation: ConversationId,
    pub at: Timestamp,
    /// What the purge deletes, as counted by the caller.
    pub loses: Loses,
    /// Pauses the follower until the purge is over.
    pub forgetting: Forgetting,
    pub reply: Reply<Purge>,
}

/// A purge that is in the journal and whose text is still being deleted.
pub(super) struct Job {
    agent: AgentId,
    conversation: ConversationId,
    next: Seq,
    through: Seq,
    deleted: Deleted,
    /// None if an earlier process began it.
    waiting: Option<Waiting>,
}

impl Thread {
    /// Queues the purges that an earlier process did not finish.
    pub(super) fn resume_purges(&mut self) {
        let Some(databases) = &self.databases else {
            return;
        };
        let unfinished = purge::unfinished(&databases.journal).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read unfinished purges");
            Vec::new()
        });
        for (agent, conversation) in unfinished {
            let found = match fold::state(databases, agent) {
                Ok((state, _)) => state.tree.get(conversation).cloned(),
                Err(error) => {
                    tracing::warn!(%agent, %conversation, %error, "unfinished purge not resumed");
                    continue;
                }
            };
            self.purges.extend(found.map(|found| Job {
                agent,
                conversation,
                next: found.began,
                through: found.head,
                deleted: Deleted::default(),
                waiting: None,
            }));
        }
    }

    /// Records the purge in the journal. The text is deleted afterwards, step by step.
    pub(super) fn begin_purge(&mut self, order: Order) {
        let fence = order.fence;
        let begun = self.in_transaction(|thread, databases| begin(thread, databases, &order));
        let (job, seq) = match begun {
            Ok(begun) => begun,
            Err(error) => return drop(order.reply.send(Err(error))),
        };
        self.notify.committed([(fence.agent, seq)]);
        let waiting = Waiting::new(seq, order.reply, order.forgetting);
        self.purges.push_back(Job {
            waiting: Some(waiting),
            ..job
        });
    }

    /// One step of the oldest purge.
    pub(super) fn purge_some(&mut self) {
        let Some(mut job) = self.purges.pop_front() else {
            return;
        };
        let done = self.in_transaction(|thread, databases| {
            let deleted = step(thread, databases, &job)?;
            Ok((deleted, None))
        });
        match done {
            Ok(deleted) => {
                job.deleted.events += deleted.events;
                job.deleted.blobs += deleted.blobs;
                job.next = Seq(job.next.0 + STRETCH);
                match job.next > job.through {
                    true => self.scrubs.push(Scrub::new(job.deleted, job.waiting)),
                    false => self.purges.push_front(job),
                }
            }
            // It continues when the disk works again.
            Err(Error::NotCommitted(disk) | Error::Uncertain(disk)) => {
                if let Some(late) = job.waiting.take_if(|waiting| waiting.is_late()) {
                    late.give_up(disk);
                }
                self.purges.push_back(job);
                self.pause();
            }
            // The disk did not fail, so a retry would fail as well.
            Err(error) => {
                tracing::warn!(agent = %job.agent, %error, "purge stopped");
                if let Some(waiting) = job.waiting {
                    waiting.fail(error);
                }
            }
        }
    }
}

pub(super) fn plain(failure: Failure) -> Error {
    match failure {
        Failure::Refused(error) => error,
        Failure::Disk(disk) => Error::NotCommitted(disk),
    }
}

fn begin(
    thread: &mut Thread,
    databases: &Databases,
    order: &Order,
) -> Result<((Job, Seq), Option<Written>)> {
    let (fence, conversation) = (order.fence, order.conversation);
    let entry = thread.entry(databases, fence).map_err(plain)?;
    let found = rules::purge::purgeable(databases, &entry.state, conversation)?;
    let job = Job {
        agent: fence.agent,
        conversation,
        next: found.began,
        through: found.head,
        deleted: Deleted::default(),
        waiting: None,
    };
    purge::begin(&databases.journal, entry.num, conversation)?;
    let event = rules::purge::record(&entry.state, conversation, order.loses, order.at);
    let mut note = append::prepare(Append::new(fence, vec![event]))?;
    let mut statement = append::statement(&databases.journal)?;
    match append::apply(thread, databases, &mut statement, &mut note).map_err(plain)? {
        (Ack::Committed { last, .. }, written) => Ok(((job, last), written)),
        // It has no counter, so it cannot be a repetition.
        (Ack::Repeated { .. }, _) => Err(Error::Closed),
    }
}

fn step(thread: &mut Thread, databases: &Databases, job: &Job) -> Result<Deleted> {
    let journal = &databases.journal;
    let entry = thread.agent(databases, job.agent).map_err(plain)?;
    let through = Seq(job.next.0 + STRETCH - 1);
    let mut deleted = purge::delete(
        journal,
        entry.num,
        job.conversation,
        job.next,
        through.min(job.through),
    )?;
    if through >= job.through {
        deleted.blobs += end(databases, entry, job.conversation)?.blobs;
    }
    Ok(deleted)
}

fn end(databases: &Databases, entry: &mut Entry, conversation: ConversationId) -> Result<Deleted> {
    let journal = &databases.journal;
    let deleted = purge::finish(journal, entry.num, &entry.state, conversation)?;
    // Drafts may have been deleted: read again where they end.
    entry.draft = drafts::stops_at(journal, entry.num)?;
    Ok(deleted)
}
