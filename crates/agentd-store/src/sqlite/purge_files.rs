//! Deletes the oldest kept contents of files. See docs/design/025-file-history.md.

use super::purge::{self, Deleted};
use super::row::{seq, sql_seq};
use crate::error::Result;
use crate::rules::purge_files::{KeptRow, Oldest};
use crate::store::KeepFiles;
use agentd_core::id::Seq;
use rusqlite::{Connection, params};

/// The condition for the kept files of a range.
const KEPT: &str =
    "agent = ?1 AND seq BETWEEN ?2 AND ?3 AND kind = 'file_kept' AND body IS NOT NULL";

/// How many bytes of files an event keeps, as a column. A body that is not valid counts nothing.
pub const COUNTED: &str = "CASE
    WHEN kind = 'file_kept' AND json_valid(body) AND json_extract(body, '$.part') = 0
     AND json_extract(body, '$.before.content.type') <> 'not_kept'
    THEN max(0, coalesce(json_extract(body, '$.before.size'), 0)) ELSE 0 END";

/// What must go so that no more is left than what is to be kept, of what is kept after `purged`.
pub fn oldest(
    journal: &Connection,
    num: i64,
    purged: Seq,
    head: Seq,
    keep: KeepFiles,
) -> Result<Oldest> {
    let sql = format!(
        "SELECT seq, CASE WHEN json_valid(body) THEN json_extract(body, '$.part') ELSE 0 END, {COUNTED}
         FROM event WHERE {KEPT} ORDER BY seq DESC"
    );
    let mut statement = journal.prepare_cached(&sql)?;
    let mut rows = statement.query(params![num, sql_seq(purged.next()), sql_seq(head)])?;
    let mut oldest = Oldest::new(keep);
    while let Some(row) = rows.next()? {
        let part: Option<i64> = row.get(1)?;
        let counted: i64 = row.get(2)?;
        oldest.add(KeptRow {
            seq: seq(row.get(0)?),
            is_first_part: part.unwrap_or_default() == 0,
            counted_bytes: counted.unsigned_abs(),
        });
    }
    Ok(oldest)
}

/// Deletes the contents up to an event.
pub fn delete(journal: &Connection, num: i64, through: Seq) -> Result<Deleted> {
    let parameters = params![num, sql_seq(Seq(1)), sql_seq(through)];
    purge::delete_where(journal, KEPT, parameters)
}
