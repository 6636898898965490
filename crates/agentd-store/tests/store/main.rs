//! The store on a real disk: its guarantees, and its behaviour when the disk fails, the process dies or a second owner
//! appears.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what it did, and panics where it cannot go on"
)]

#[path = "../conformance/author.rs"]
mod author;
mod backup;
mod checkpoint;
mod damage;
mod draft;
#[path = "../conformance/export_file.rs"]
mod export_file;
mod faults;
mod head;
mod lab;
mod list;
mod migrations;
#[path = "../conformance/model.rs"]
mod model;
mod ownership;
mod portable;
mod purge;
mod repair;
#[path = "../conformance/run.rs"]
mod run;
mod search;
mod second;
mod snapshots;
mod syncs;
#[path = "../conformance/walk.rs"]
mod walk;
