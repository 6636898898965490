//! A caller that waits until a purge is over.

use super::Reply;
use crate::error::{Disk, Error};
use crate::sqlite::follower::Forgetting;
use crate::sqlite::purge::Deleted;
use crate::store::Purge;
use agentd_core::id::Seq;
use std::time::{Duration, Instant};

/// How long the caller waits before it is told that the purge has not finished.
const WAIT: Duration = Duration::from_secs(30);

/// A caller that waits until a purge is over.
pub(super) struct Waiting {
    seq: Seq,
    reply: Reply<Purge>,
    deadline: Instant,
    _forgetting: Forgetting,
}

impl Waiting {
    /// `seq` is the purge's event in the journal.
    pub fn new(seq: Seq, reply: Reply<Purge>, forgetting: Forgetting) -> Self {
        Self {
            seq,
            reply,
            deadline: Instant::now() + WAIT,
            _forgetting: forgetting,
        }
    }

    pub fn is_late(&self) -> bool {
        self.deadline < Instant::now()
    }

    pub fn give_up(self, why: Disk) {
        self.fail(Error::NotScrubbed(why));
    }

    pub fn fail(self, error: Error) {
        let _gone = self.reply.send(Err(error));
    }

    pub fn done(self, deleted: Deleted) {
        let _gone = self.reply.send(Ok(Purge {
            events: deleted.events,
            blobs: deleted.blobs,
            seq: self.seq,
        }));
    }
}
