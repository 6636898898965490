//! Checks the journal in a directory, all of it or within a limit of time, without opening a store. A damaged journal and
//! its write-ahead log are left unchanged. The full check migrates a journal of an older agentd first.

use super::derived::Derived;
use super::head::{self, Found};
use super::readers::Databases;
use super::store::SqliteStore;
use super::{Options, connect, open, salvage, schema, verify};
use crate::damage::{Checked, HeadState, Report};
use crate::error::{Cause, Disk, Error, Result};
use rusqlite::{Connection, ErrorCode};
use std::sync::{Arc, mpsc};
use std::time::Duration;

impl SqliteStore {
    /// Whether [`SqliteStore::open`] would accept the journal in a directory, and whether SQLite finds the file intact as
    /// far as it can check it within `limit`. Changes nothing.
    pub fn quick_check(options: &Options, limit: Duration) -> Result<Checked> {
        quick_check(options, limit)
    }

    /// Checks the journal in a directory. Changes no event; migrates a journal of an older agentd.
    pub fn inspect(options: &Options) -> Result<Report> {
        inspect(options)
    }
}

/// Reports damage. An error if there is no journal, or if a newer agentd wrote it.
pub fn inspect(options: &Options) -> Result<Report> {
    // Read before the journal: another process may commit in between.
    let head = head::read(&options.head());
    head::check_beginning(options, &head)?;
    match check(options, &head) {
        Err(Error::Unavailable(Disk::Corrupt(error) | Disk::Other(error))) => {
            // SQLite cannot open it at all.
            let mut report = salvage::survey(options, &head)?;
            if report.agents == 0 && options.agents_beside().next().is_none() {
                // Nothing in the file or beside it shows that it was a journal.
                return Err(Error::Unavailable(Disk::Corrupt(error)));
            }
            report.file.push(error.to_string());
            report.head = state(&head);
            Ok(report)
        }
        checked => checked,
    }
}

/// An error if the journal is missing, has lost events, is damaged, or was written by a newer agentd.
fn quick_check(options: &Options, limit: Duration) -> Result<Checked> {
    if options.is_replacing() {
        return Err(Error::RepairUnfinished);
    }
    let has_log = std::fs::metadata(options.journal_log()).is_ok_and(|log| log.len() > 0);
    // Read before the journal: another process may commit in between.
    let known = head::read(&options.head());
    head::check(options, &known)?;
    if !options.journal().exists() {
        return Ok(Checked::Absent);
    }
    let journal = connect::reader(options, &options.journal())?;
    connect::leave_log(&journal)?;
    schema::check(&journal, schema::JOURNAL)?;
    let checked = check_pages(&journal, limit)?;
    if !has_log {
        // Closing then deletes the empty log that opening has created.
        connect::clear_log(&journal)?;
    }
    Ok(checked)
}

/// SQLite's quick check of the whole file, stopped at the limit.
fn check_pages(journal: &Connection, limit: Duration) -> Result<Checked> {
    let interrupt = journal.get_interrupt_handle();
    let (done, is_done) = mpsc::channel::<()>();
    let timer = connect::spawn("check", move || {
        if is_done.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            interrupt.interrupt();
        }
    })?;
    let found: rusqlite::Result<String> =
        journal.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
    drop(done);
    // It ends at once: its channel is closed, or its time is over.
    let _ = timer.join();
    match found {
        Ok(found) if found == "ok" => Ok(Checked::Sound),
        Ok(found) => Err(Error::Unavailable(Disk::Corrupt(cause(&found)))),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            Ok(Checked::SoFar)
        }
        Err(error) => Err(error.into()),
    }
}

/// What SQLite reports, on one line.
fn cause(found: &str) -> Cause {
    let words: Vec<&str> = found.split_whitespace().collect();
    Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(
        words.join(" "),
    ))
}

fn state(head: &Found) -> HeadState {
    match head {
        Found::Absent => HeadState::Absent,
        Found::Unreadable => HeadState::Unreadable,
        Found::Whole(_) => HeadState::Good,
    }
}

fn check(options: &Options, head: &Found) -> Result<Report> {
    let journal = connect::reader(options, &options.journal())?;
    connect::leave_log(&journal)?;
    schema::check(&journal, schema::JOURNAL)?;
    if !schema::is_current(&journal, schema::JOURNAL)? {
        // An older agentd wrote it: migrate it first.
        drop(journal);
        return match open::open(options) {
            Ok(migrated) => {
                drop(migrated);
                check(options, head)
            }
            // The tables themselves were lost with the log.
            Err(Error::Behind { missing, .. }) => Ok(Report {
                damaged: missing.agents,
                head: HeadState::Ahead,
                ..Report::default()
            }),
            Err(error) => Err(error),
        };
    }
    let derived = Derived::reader(options);
    let databases = Databases { journal, derived };
    let report = verify::verify(&databases, head, None)?;
    if report.is_clean() {
        connect::clear_log(&databases.journal)?;
    }
    Ok(report)
}
