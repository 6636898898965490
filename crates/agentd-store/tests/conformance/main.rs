//! What every [`Store`](agentd_store::Store) must do, whatever it keeps its data in.
//!
//! Each test is a function over a [`subject::Subject`]: a backend that can be opened, closed and opened again. A new
//! backend adds a file like `sqlite.rs`. How SQLite's files, threads and processes behave is tested in `tests/store`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what it did, and panics where it cannot go on"
)]

mod author;
mod backup;
mod draft;
mod export_file;
mod hostile;
mod journal;
mod list;
mod lookup;
mod model;
mod names;
mod ownership;
mod portable;
mod purge;
mod purge_files;
mod run;
mod search;
mod sqlite;
mod subject;
mod suite;
mod tail;
mod walk;
