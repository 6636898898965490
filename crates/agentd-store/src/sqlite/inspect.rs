//! Checks the journal in a directory without opening a store. A damaged journal and its write-ahead log are left
//! unchanged. A journal of an older agentd is migrated first.

use super::derived::Derived;
use super::head::{self, Found};
use super::readers::Databases;
use super::store::SqliteStore;
use super::{Options, connect, open, salvage, schema, verify};
use crate::damage::{HeadState, Report};
use crate::error::{Disk, Error, Result};

impl SqliteStore {
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
