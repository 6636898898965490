//! The embedded store: one writer thread with group commit, a few readers, and a follower that maintains
//! derived data.
//!
//! - `journal.db`, written by `writer` alone, with full durability.
//! - `journal.head`, written by `writer` after each commit, without a sync: what was acknowledged.
//! - `derived.db`, written by `follower` alone: snapshots and the search index.

mod agents;
mod backup;
mod blobs;
mod connect;
mod cursor;
mod derived;
mod drafts;
mod due;
mod entry;
#[cfg(test)]
mod explain;
mod export;
mod fold;
mod follower;
mod head;
pub mod history;
mod import;
mod inspect;
mod journals;
mod load;
mod names;
mod notify;
mod open;
mod options;
mod purge;
mod purge_files;
mod purgeable;
mod read;
mod readers;
mod repair;
mod row;
mod salvage;
mod schema;
mod search;
mod shard;
mod snapshot;
mod spending;
mod sql_error;
mod store;
mod template;
mod turns;
mod verify;
mod window;
mod writer;
mod written;

pub use backup::JournalRestore;
pub use options::{Failpoints, InjectedBugs, Options};
pub use repair::{Hit, Repaired};
pub use store::SqliteStore;
