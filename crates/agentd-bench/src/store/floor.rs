//! The least that durable appends could cost: the same rows in bare SQLite, the same bytes in a file.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::measure::rate;

type Row = Vec<Value>;

/// The rows of a journal's event table, in the order of their commits.
pub struct Rows {
    /// The statement that created the table, from the journal itself.
    table: String,
    insert: String,
    page_size: i64,
    rows: Vec<Row>,
}

impl Rows {
    /// Reads the journal of a store that has been closed.
    pub fn of(bench_dir: &Path) -> Result<Self> {
        let journal = Connection::open(bench_dir.join("journal.db"))?;
        let table: String = journal.query_row(
            "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = 'event'",
            [],
            |row| row.get(0),
        )?;
        let page_size = journal.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        let mut statement = journal.prepare("SELECT * FROM event ORDER BY position")?;
        // The first column is the position, which SQLite assigns.
        let columns: Vec<String> = statement
            .column_names()
            .skip(1)
            .map(str::to_owned)
            .collect();
        let places: Vec<String> = (1..=columns.len()).map(|n| format!("?{n}")).collect();
        let insert = format!(
            "INSERT INTO event ({}) VALUES ({})",
            columns.join(", "),
            places.join(", ")
        );
        let count = columns.len();
        let rows = statement
            .query_map([], |row| {
                (1..=count).map(|column| row.get(column)).collect()
            })?
            .collect::<rusqlite::Result<_>>()?;
        Ok(Self {
            table,
            insert,
            page_size,
            rows,
        })
    }

    fn split(&self, before: usize, timed: usize) -> Result<(&[Row], &[Row])> {
        match self
            .rows
            .get(..before)
            .zip(self.rows.get(before..before + timed))
        {
            Some(parts) => Ok(parts),
            None => bail!("{} rows are too few", self.rows.len()),
        }
    }
}

/// Rows per second in bare SQLite, with `group` rows per transaction. The first `before` rows are inserted but not
/// measured.
pub fn sqlite(
    bench_dir: &Path,
    rows: &Rows,
    before: usize,
    timed: usize,
    group: usize,
) -> Result<f64> {
    let (first, timed) = rows.split(before, timed)?;
    let connection = Connection::open(bench_dir.join("floor.db"))?;
    // The same settings as in the store.
    connection.pragma_update(None, "page_size", rows.page_size)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", 2000)?;
    connection.execute_batch(&rows.table)?;
    insert_in_groups(&connection, rows, first, 64)?;
    let start = Instant::now();
    insert_in_groups(&connection, rows, timed, group)?;
    Ok(rate(timed.len(), start.elapsed()))
}

fn insert_in_groups(
    connection: &Connection,
    rows: &Rows,
    values: &[Row],
    group: usize,
) -> Result<()> {
    let mut insert = connection.prepare(&rows.insert)?;
    let mut begin = connection.prepare("BEGIN IMMEDIATE")?;
    let mut commit = connection.prepare("COMMIT")?;
    for group in values.chunks(group.max(1)) {
        begin.execute([])?;
        for row in group {
            insert.execute(params_from_iter(row))?;
        }
        commit.execute([])?;
    }
    Ok(())
}

/// Rows per second appended to a plain file, with `group` rows per `fdatasync`. The first `before` rows are skipped.
pub fn file(
    bench_dir: &Path,
    rows: &Rows,
    before: usize,
    timed: usize,
    group: usize,
) -> Result<f64> {
    let (_, timed) = rows.split(before, timed)?;
    let bytes: Vec<Vec<u8>> = timed.iter().map(|row| flat(row)).collect();
    let mut file = File::create(bench_dir.join("floor.log"))?;
    let mut buffer = Vec::new();
    let start = Instant::now();
    for group in bytes.chunks(group.max(1)) {
        buffer.clear();
        group.iter().for_each(|row| buffer.extend_from_slice(row));
        file.write_all(&buffer)?;
        file.sync_data()?;
    }
    Ok(rate(bytes.len(), start.elapsed()))
}

fn flat(row: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in row {
        match value {
            Value::Null => bytes.push(0),
            Value::Integer(value) => bytes.extend(value.to_le_bytes()),
            Value::Real(value) => bytes.extend(value.to_le_bytes()),
            Value::Text(value) => bytes.extend(value.as_bytes()),
            Value::Blob(value) => bytes.extend(value),
        }
    }
    bytes
}

/// The number of commits to a database in WAL mode since it was first opened: a counter at the beginning of its shared
/// memory, which SQLite's file format documents.
pub fn commits(database: &Path) -> Result<u32> {
    let mut name = database.as_os_str().to_owned();
    name.push("-shm");
    let shared = fs::read(&name).context("the journal's shared memory cannot be read")?;
    let counter = shared.get(8..12).and_then(|bytes| bytes.try_into().ok());
    counter
        .map(u32::from_ne_bytes)
        .context("the journal's shared memory is too short")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_counted() -> Result<()> {
        let bench_dir = tempfile::tempdir()?;
        let path = bench_dir.path().join("a.db");
        let connection = Connection::open(&path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.execute_batch("CREATE TABLE t (a)")?;
        let before = commits(&path)?;
        for _ in 0..7 {
            connection.execute_batch(
                "BEGIN; INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); COMMIT",
            )?;
        }
        assert_eq!(commits(&path)? - before, 7);
        Ok(())
    }
}
