//! The journal: what is appended here is on disk before anyone sees it or acts on it.
//!
//! The only room with SQL. It may **not** know what an event means beyond folding it with
//! `agentd-core`: it gives events their place, keeps them whole, and finds them again.
//!
//! - [`Store`]: what every store must do; the words and errors of its callers.
//! - [`sqlite`]: the embedded one.

mod chain;
mod error;
mod export;
mod rechain;
pub mod sqlite;
mod store;

pub use error::{Disk, Error, Result, Unreadable};
pub use sqlite::{Failpoints, Hit, InjectedBugs, Options, Repaired, SqliteStore};
pub use store::*;
