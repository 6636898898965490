//! Databases of other programs, to import their histories. Only a copy is opened: the source is never written to, and no
//! lock of its program is touched.

mod copy;
mod goose;
mod opencode;
mod salvage;

use agentd_core::import_history::{Program, Record};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The bytes of one record. A longer one is not read.
const RECORD_BYTES: i64 = if cfg!(test) {
    64 * 1024
} else {
    64 * 1024 * 1024
};

/// The record in place of one that a damaged database does not give.
pub const DAMAGED_RECORD: &[u8] = b"damaged";

/// Why a database cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("{path} cannot be copied: {source}")]
    Copy {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path} is not a database that can be read: {reason}")]
    Unreadable { path: PathBuf, reason: String },
    #[error("{path} is not a database of {program}: it has no table `{table}`")]
    OtherProgram {
        path: PathBuf,
        program: Program,
        table: &'static str,
    },
}

/// A copy of a database of goose or opencode.
pub struct HistoryDatabase {
    program: Program,
    path: PathBuf,
    connection: Connection,
}

impl HistoryDatabase {
    /// Whether the program keeps its history in a database.
    pub const fn is_used_by(program: Program) -> bool {
        matches!(program, Program::Goose | Program::Opencode)
    }

    /// Copies the database and its log to the empty directory `scratch`, and opens the copy.
    pub fn open(program: Program, path: &Path, scratch: &Path) -> Result<Self, HistoryError> {
        let copied = copy::copy(path, scratch);
        let copied = copied.map_err(|source| HistoryError::Copy {
            path: path.to_owned(),
            source,
        })?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(copied, flags).and_then(|connection| {
            // What the schema of the file computes must not run functions with effects.
            connection.pragma_update(None, "trusted_schema", false)?;
            Ok(connection)
        });
        let connection = opened.map_err(|error| unreadable(path, &error))?;
        let database = Self {
            program,
            path: path.to_owned(),
            connection,
        };
        database.check_tables()?;
        Ok(database)
    }

    fn check_tables(&self) -> Result<(), HistoryError> {
        let tables: &[&'static str] = match self.program {
            Program::Goose => &goose::TABLES,
            _ => &opencode::TABLES,
        };
        for table in tables {
            let found = self.connection.query_row(
                "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?1",
                [table],
                |row| row.get::<_, i64>(0),
            );
            if found.map_err(|error| unreadable(&self.path, &error))? == 0 {
                return Err(HistoryError::OtherProgram {
                    path: self.path.clone(),
                    program: self.program,
                    table,
                });
            }
        }
        Ok(())
    }

    /// The ids of all sessions, the oldest first. Where their table is damaged, those of the messages come after the ones
    /// that can be read.
    pub fn sessions(&self) -> Result<Vec<String>, HistoryError> {
        let (sql, columns) = match self.program {
            Program::Goose => (goose::SESSIONS, goose::IDS),
            _ => (opencode::SESSIONS, opencode::IDS),
        };
        let mut ids = SessionIds::default();
        let Err(error) = self.add_ids(sql, &mut ids) else {
            return Ok(ids.in_order);
        };
        for (table, column) in columns {
            self.salvage_ids(table, column, &mut ids);
        }
        match ids.in_order.is_empty() {
            true => Err(unreadable(&self.path, &error)),
            false => Ok(ids.in_order),
        }
    }

    /// Adds the ids that a query finds, up to the first one that cannot be read.
    fn add_ids(&self, sql: &str, ids: &mut SessionIds) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            ids.add(row.get(0)?);
        }
        Ok(())
    }

    /// Adds the ids in all rows of a table that can be read, in the order in which the rows were made.
    fn salvage_ids(&self, table: &str, column: &str, ids: &mut SessionIds) {
        let sql = format!(
            "SELECT {column}, rowid FROM {table} NOT INDEXED WHERE rowid >= ?1 AND rowid <= ?2 ORDER BY rowid"
        );
        // What cannot be read is reported with the records.
        let _lost = salvage::rows(&self.connection, table, 0, &mut |low, high, last| {
            let mut statement = self.connection.prepare_cached(&sql)?;
            // `>` would begin at the row `low`, whose page may be damaged.
            let mut rows = statement.query([low.saturating_add(1), high])?;
            while let Some(row) = rows.next()? {
                ids.add(row.get(0)?);
                *last = row.get(1)?;
            }
            Ok(())
        });
    }

    /// Passes on the session and its messages, one at a time. Where the database is damaged, the messages that can be read
    /// are passed on, and a damaged record for each one that cannot. A damaged page may have messages of other sessions,
    /// too.
    pub fn records(&self, session: &str, each: &mut dyn FnMut(Record<'_>)) {
        let lost = match self.program {
            Program::Goose => goose::records(&self.connection, session, each),
            _ => opencode::records(&self.connection, session, each),
        };
        for _ in 0..lost {
            each(Record::Text(DAMAGED_RECORD));
        }
    }
}

/// The ids of sessions, each once.
#[derive(Default)]
struct SessionIds {
    in_order: Vec<String>,
    known: BTreeSet<String>,
}

impl SessionIds {
    fn add(&mut self, id: String) {
        if self.known.insert(id.clone()) {
            self.in_order.push(id);
        }
    }
}

fn unreadable(path: &Path, error: &rusqlite::Error) -> HistoryError {
    HistoryError::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

/// SQL for the bytes of these columns together. It does not read them, and unlike `length` counts what follows a NUL.
fn bytes_of(columns: &[&str]) -> String {
    let columns = columns.iter();
    let bytes: Vec<String> = columns
        .map(|column| format!("coalesce(octet_length({column}), 0)"))
        .collect();
    bytes.join(" + ")
}

/// A row as an object with its columns.
fn object(row: &Row<'_>) -> rusqlite::Result<Map<String, Value>> {
    let mut object = Map::new();
    let names = row.as_ref().column_names();
    for (index, name) in names.into_iter().enumerate() {
        let value = match row.get_ref(index)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => number.into(),
            ValueRef::Real(number) => number.into(),
            ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned().into(),
            ValueRef::Blob(_) => continue,
        };
        object.insert(name.to_owned(), value);
    }
    Ok(object)
}

/// A column that contains JSON; null if it contains something else.
fn json(text: Option<&str>) -> Value {
    let value = text.and_then(|text| serde_json::from_str(text).ok());
    value.unwrap_or(Value::Null)
}

fn pass_on(record: &Value, each: &mut dyn FnMut(Record<'_>)) {
    each(Record::Text(record.to_string().as_bytes()));
}

#[cfg(test)]
mod tests;
