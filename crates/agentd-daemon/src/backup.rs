//! Backups of a home: one file with the journal at one moment and the files that belong to it. See
//! docs/design/031-backups.md.
//!
//! - `error`: why a backup cannot be made or used.
//! - `home_file`: the files of a home that backups have, as names without paths. Secrets are not among them.
//! - `archive`: the format of the file; `chain`: a backup with the earlier ones that it needs.
//! - `make`: makes a backup of a home that is in use; `scheduled`: makes one from time to time, and deletes old ones.
//! - `unpack`: reads a chain back and checks all of it; `verify` and `restore` use it.

mod archive;
mod chain;
mod error;
mod home_file;
mod make;
mod restore;
pub(crate) mod scheduled;
mod unpack;
mod verify;

pub use error::Error;
pub(crate) use make::{Kind, Order, Replace, make};
pub use restore::{Restore, RestoredBackup, restore};
pub use verify::{VerifiedBackup, verify};

use std::sync::Arc;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// How far the work has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub bytes: u64,
    /// How many there will be, where that can be estimated.
    pub of: Option<u64>,
    pub step: Step,
}

/// What follows if the work goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Work that can be ended later.
    More,
    /// What cannot be ended any more: the work completes.
    Last,
}

/// Called while a backup is made or read. False ends the work.
pub type Watch = Arc<dyn Fn(Progress) -> bool + Send + Sync>;
