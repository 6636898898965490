//! Writes the journal at one moment as parts, inside one read transaction. See docs/design/031-backups.md.
//!
//! A part is the number of a table, the number of rows, and the rows. A column is a tag and its value. The rows of `event`
//! and `blob` are never deleted, so an incremental backup has only the new ones, and the old ones that were blanked. All
//! other tables are small and always complete.

mod codec;
mod load;

pub use load::JournalRestore;

use super::Options;
use super::{connect, schema};
use crate::backup::{BackedUp, BackupMark, BackupSink};
use crate::chain;
use crate::error::{Disk, Error, Result};
use agentd_core::id::{AgentId, ConversationId};
use codec::Batch;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::os::unix::fs::MetadataExt as _;

/// A table that backups contain.
pub(super) struct Table {
    pub name: &'static str,
    pub rows: Rows,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// Rows are added at the end, under growing keys, and later only blanked.
    Grow {
        key: &'static str,
        /// The condition for rows that were blanked.
        blanked: &'static str,
    },
    /// Every backup has all rows.
    Whole,
}

/// Not `listing`: triggers maintain it. The position in this list is part of the format.
pub(super) const TABLES: [Table; 9] = [
    Table {
        name: "event",
        rows: Rows::Grow {
            key: "position",
            blanked: "body IS NULL",
        },
    },
    Table {
        name: "blob",
        rows: Rows::Grow {
            key: "num",
            blanked: "hash IS NULL",
        },
    },
    whole("agent"),
    whole("name"),
    whole("blob_use"),
    whole("draft"),
    whole("branch"),
    whole("purging"),
    whole("quarantine"),
];

const fn whole(name: &'static str) -> Table {
    Table {
        name,
        rows: Rows::Whole,
    }
}

/// The content of a [`BackupMark`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub schema: u32,
    /// The file of the journal. A repair makes another file, with other numbers in it.
    pub inode: u64,
    /// The last event, in the order of all commits.
    pub position: i64,
    /// The last string that is stored separately.
    pub blob: i64,
    /// The digest of the positions and chain values of all events up to the last one. They never change, so a journal with
    /// another digest is not a continuation of this one.
    pub spine: String,
}

impl Mark {
    pub fn read(mark: &BackupMark) -> Result<Self> {
        let unreadable = |error| Error::BadBackup(format!("an unreadable mark: {error}"));
        serde_json::from_str(&mark.0).map_err(unreadable)
    }

    fn write(&self) -> Result<BackupMark> {
        let text = serde_json::to_string(self).map_err(Error::Encode)?;
        Ok(BackupMark(text))
    }
}

/// Writes the journal, or what was added to it and changed in it since an earlier backup.
pub fn write(
    options: &Options,
    since: Option<&BackupMark>,
    out: &mut dyn BackupSink,
) -> Result<BackedUp> {
    let since = since.map(Mark::read).transpose()?;
    let inode = std::fs::metadata(options.journal())
        .map_err(|error| Error::Unavailable(super::template::of_io(error)))?
        .ino();
    let journal = connect::reader(options, &options.journal())?;
    // One moment for all tables. The writer continues meanwhile; its log grows until this ends.
    let moment = journal.unchecked_transaction()?;
    let schema = schema::version(&journal)?;
    let mut spine = Sha256::new();
    if let Some(since) = &since {
        add_to_spine(&journal, since.position, &mut spine)?;
        let found = chain::hex(&spine.clone().finalize());
        let is_same = (since.schema, since.inode, &since.spine) == (schema, inode, &found);
        if !is_same {
            return Err(Error::OtherJournal);
        }
    }
    let mut mark = Mark {
        schema,
        inode,
        position: since.as_ref().map_or(0, |since| since.position),
        blob: since.as_ref().map_or(0, |since| since.blob),
        spine: String::new(),
    };
    for (number, table) in TABLES.iter().enumerate() {
        let after = match (since.as_ref(), table.name) {
            (Some(since), "event") => since.position,
            (Some(since), "blob") => since.blob,
            _ => 0,
        };
        let last = write_table(&journal, number as u8, table, after, out)?;
        match table.name {
            "event" => mark.position = mark.position.max(last),
            "blob" => mark.blob = mark.blob.max(last),
            _ => {}
        }
    }
    add_to_spine_after(
        &journal,
        since.map_or(0, |since| since.position),
        &mut spine,
    )?;
    mark.spine = chain::hex(&spine.finalize());
    let count = |sql: &str| -> Result<u64> {
        let found: i64 = journal.query_row(sql, [], |row| row.get(0))?;
        Ok(found.unsigned_abs())
    };
    let backed_up = BackedUp {
        mark: mark.write()?,
        agents: count("SELECT count(*) FROM agent WHERE listed > 0")?,
        events: count("SELECT count(*) FROM event WHERE agent > 0")?,
    };
    // Nothing was written.
    drop(moment);
    Ok(backed_up)
}

/// Writes the rows of a table, and returns the last key of a table that grows.
fn write_table(
    journal: &Connection,
    number: u8,
    table: &Table,
    after: i64,
    out: &mut dyn BackupSink,
) -> Result<i64> {
    let name = table.name;
    let (sql, key) = match table.rows {
        Rows::Grow { key, blanked } => {
            let sql = format!("SELECT * FROM {name} WHERE {key} > ?1 OR {blanked} ORDER BY {key}");
            (sql, true)
        }
        Rows::Whole => (format!("SELECT * FROM {name} WHERE ?1 IS NOT NULL"), false),
    };
    let mut statement = journal.prepare(&sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([after])?;
    let (mut batch, mut last) = (Batch::new(number), 0);
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            let value = row.get_ref(column)?;
            if let (0, true, ValueRef::Integer(found)) = (column, key, value) {
                last = found;
            }
            batch.value(value)?;
        }
        batch.end_row();
        if batch.is_full() {
            put(&mut batch, out)?;
        }
    }
    put(&mut batch, out)?;
    Ok(last)
}

fn put(batch: &mut Batch, out: &mut dyn BackupSink) -> Result<()> {
    match batch.take() {
        Some(part) => out.part(&part).map_err(Error::BackupIo),
        None => Ok(()),
    }
}

/// Adds the events up to a position.
fn add_to_spine(journal: &Connection, through: i64, spine: &mut Sha256) -> Result<()> {
    let sql = "SELECT position, chain FROM event WHERE position <= ?1 ORDER BY position";
    add_rows(journal, sql, through, spine)
}

/// Adds the events after a position.
fn add_to_spine_after(journal: &Connection, after: i64, spine: &mut Sha256) -> Result<()> {
    let sql = "SELECT position, chain FROM event WHERE position > ?1 ORDER BY position";
    add_rows(journal, sql, after, spine)
}

fn add_rows(journal: &Connection, sql: &str, bound: i64, spine: &mut Sha256) -> Result<()> {
    let mut statement = journal.prepare(sql)?;
    let mut rows = statement.query([bound])?;
    while let Some(row) = rows.next()? {
        let position: i64 = row.get(0)?;
        spine.update(position.to_le_bytes());
        let ValueRef::Blob(chain) = row.get_ref(1)? else {
            return Err(Error::BadBackup("a chain value is not bytes".to_owned()));
        };
        spine.update(chain);
    }
    Ok(())
}

/// The conversations whose text was purged, according to their journals.
pub fn purged(journal: &Connection) -> Result<Vec<(AgentId, ConversationId)>> {
    let sql = "SELECT agent.id, json_extract(event.body, '$.conversation')
               FROM event JOIN agent ON agent.num = event.agent
               WHERE event.kind = 'purged' AND json_valid(event.body)
                 AND json_extract(event.body, '$.files') IS NULL
               ORDER BY event.position";
    let mut statement = journal.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut purged = Vec::new();
    while let Some(row) = rows.next()? {
        let agent = AgentId::from_bytes(row.get(0)?);
        let conversation: Option<String> = row.get(1)?;
        // `verify` reports an event that cannot be read.
        let conversation = conversation.and_then(|id| id.parse().ok());
        purged.extend(conversation.map(|conversation| (agent, conversation)));
    }
    Ok(purged)
}

/// A table of this name must exist before rows are put into it.
fn has_table(journal: &Connection, name: &str) -> Result<bool> {
    let sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
    let found: Option<i64> = journal
        .query_row(sql, [name], |row| row.get(0))
        .optional()
        .map_err(|error| Error::Unavailable(Disk::from_sqlite(error)))?;
    Ok(found.is_some())
}
