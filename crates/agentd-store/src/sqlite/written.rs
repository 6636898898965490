//! What a commit has written, and whether it is on disk.

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
            // This very piece: the same commit may contain pieces of a newer try.
            let parameters = params![
                num,
                request.incarnation.0 as i64,
                request.n as i64,
                offset as i64,
            ];
            let found = journal
                .prepare_cached(
                    "SELECT 1 FROM draft
                     WHERE agent = ?1 AND incarnation = ?2 AND try = ?3 AND at = ?4",
                )?
                .exists(parameters)?;
            Ok(found)
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

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::id::Incarnation;

    #[test]
    fn a_draft_is_found_although_its_commit_has_one_of_a_newer_try() {
        let journal = Connection::open_in_memory().unwrap();
        journal
            .execute_batch(
                "CREATE TABLE draft (agent INTEGER, incarnation INTEGER, try INTEGER, at INTEGER,
                    bytes BLOB);
                 INSERT INTO draft VALUES (1, 1, 1, 0, x'aa'), (1, 1, 1, 1, x'bb'), (1, 1, 2, 0, x'cc');",
            )
            .unwrap();
        let is_found = |n, offset| {
            let request = TryId {
                incarnation: Incarnation(1),
                n,
            };
            let num = 1;
            is_there(
                &journal,
                Written::Draft {
                    num,
                    request,
                    offset,
                },
            )
            .unwrap()
        };
        assert!(is_found(1, 0) && is_found(1, 1) && is_found(2, 0));
        assert!(!is_found(2, 1) && !is_found(3, 0));
    }
}
