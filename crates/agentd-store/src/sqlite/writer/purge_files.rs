//! Deletes the oldest kept contents of files, in the commit that records it.

use super::purge::plain;
use super::{Reply, Thread, append};
use crate::error::{Error, Result};
use crate::sqlite::purge_files;
use crate::sqlite::readers::Databases;
use crate::sqlite::written::Written;
use crate::store::{Ack, Append, Fence, KeepFiles};
use agentd_core::event::Event;
use agentd_core::time::Timestamp;

/// A request to delete old contents.
pub(super) struct Order {
    pub fence: Fence,
    pub keep: KeepFiles,
    pub at: Timestamp,
    pub reply: Reply<Option<Event>>,
}

impl Thread {
    pub(super) fn purge_files(&mut self, order: Order) {
        let done = self.in_transaction(|thread, databases| delete(thread, databases, &order));
        if let Ok(Some(event)) = &done {
            self.notify.committed([(event.agent, event.seq)]);
        }
        let _gone = order.reply.send(done);
    }
}

fn delete(
    thread: &mut Thread,
    databases: &Databases,
    order: &Order,
) -> Result<(Option<Event>, Option<Written>)> {
    let journal = &databases.journal;
    let entry = thread.entry(databases, order.fence).map_err(plain)?;
    let state = &entry.state;
    let purged = state.files.purged_through;
    let oldest = purge_files::oldest(journal, entry.num, purged, state.head, order.keep)?;
    let events = match oldest.through() {
        Some(through) => purge_files::delete(journal, entry.num, through)?.events,
        None => 0,
    };
    let Some(event) = oldest.record(state, events, order.at) else {
        return Ok((None, None));
    };
    let mut note = append::prepare(Append::new(order.fence, vec![event.clone()]))?;
    let mut statement = append::statement(journal)?;
    match append::apply(thread, databases, &mut statement, &mut note).map_err(plain)? {
        (Ack::Committed { first, .. }, written) => {
            Ok((Some(event.placed(order.fence.agent, first)), written))
        }
        // It has no counter, so it cannot be a repetition.
        (Ack::Repeated { .. }, _) => Err(Error::Closed),
    }
}
