//! The store on a real disk: its guarantees, and its behaviour when the disk fails, the process dies or a second owner
//! appears.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what it did, and panics where it cannot go on"
)]

mod damage;
mod draft;
mod faults;
mod head;
mod hostile;
mod lab;
mod list;
mod migrations;
mod model;
mod ownership;
mod places;
mod portable;
mod purge;
mod repair;
mod search;
mod second;
mod snapshots;
mod syncs;
mod tail;
mod walk;
