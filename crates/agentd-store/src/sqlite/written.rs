//! What a commit has written, and whether it is on disk.

use super::drafts;
use super::row::{IdParam, sql_seq};
use crate::chain::Hash;
use crate::error::Result;
use crate::store::Fence;
use agentd_core::id::{Seq, TryId};
use rusqlite::{Connection, OptionalExtension as _, params};

/// One write of a commit, which can be looked up after a failure. A commit is atomic: if one of its writes is on disk,
/// all are.
#[derive(Clone, Copy)]
pub enum Written {
    /// The last event of an append.
    Event {
        num: i64,
        seq: Seq,
        chain: Hash,
    },
    Draft {
        num: i64,
        request: TryId,
        offset: u64,
    },
    Claim(Fence),
}

/// Whether the write is in the journal.
pub fn is_there(journal: &Connection, written: Written) -> Result<bool> {
    match written {
        Written::Event { num, seq, chain } => {
            let found: Option<Hash> = journal
                .prepare_cached("SELECT chain FROM event WHERE agent = ?1 AND seq = ?2")?
                .query_row(params![num, sql_seq(seq)], |row| row.get(0))
                .optional()?;
            Ok(found == Some(chain))
        }
        Written::Draft {
            num,
            request,
            offset,
        } => {
            let stops_at = drafts::stops_at(journal, num)?;
            Ok(stops_at.is_some_and(|(of, stops_at)| of == request && stops_at > offset))
        }
        Written::Claim(fence) => {
            let epoch: Option<i64> = journal
                .prepare_cached("SELECT fence FROM agent WHERE id = ?1")?
                .query_row([IdParam(fence.agent.as_bytes())], |row| row.get(0))
                .optional()?;
            Ok(epoch.is_some_and(|epoch| epoch.unsigned_abs() >= fence.epoch))
        }
    }
}
