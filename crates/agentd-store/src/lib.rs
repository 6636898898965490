//! The journal: an appended event is on disk before any other part of agentd sees it or acts on it.
//!
//! The only crate with SQL. It may **not** know what an event means beyond folding it with
//! `agentd-core`: it numbers events, keeps them intact, and finds them again.
//!
//! - [`Store`]: the interface of every store, with its types and errors. It does not depend on a backend.
//! - `rules`: what holds for every backend. `stored`, `apart`, `chain`, `export`, `backup`: the formats.
//! - [`sqlite`]: the embedded backend. The tests in `tests/conformance` define what a backend must do.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod apart;
mod backup;
mod chain;
mod damage;
mod error;
mod export;
mod rechain;
mod rules;
pub mod sqlite;
mod store;
mod stored;

pub use apart::MAX_EVENT_BYTES;
pub use backup::{BackedUp, BackupMark, BackupSink, Link, MAX_PART};
pub use damage::{Checked, Damage, HeadState, Missing, Report, Unreadable};
pub use error::{Cause, Disk, Error, Result};
pub use export::{File as ImportFile, JournalFile};
pub use sqlite::history::{DAMAGED_RECORD, HistoryDatabase, HistoryError};
pub use sqlite::{Failpoints, Hit, InjectedBugs, JournalRestore, Options, Repaired, SqliteStore};
pub use store::*;
