//! The history of files: which changes an agent's journal records, and which state each path must get when files are
//! restored to an earlier position.
//!
//! [`History`] folds the events about files, without their contents. [`restore`] and [`undo`] compute from it what each
//! path was, what it must be now if nothing else changed it, and what cannot be restored. [`work`] is the protocol with
//! the process that reads and writes the files.

mod change;
mod compare;
mod history;
mod inherit;
mod journals;
mod left_by_restores;
mod lost;
mod plan;
mod recorded;
mod room;
mod select;
mod target;
mod undo;
pub mod work;

pub use crate::event::{CannotRestore, NotRestored};
pub use change::{Change, ChangedBy, Earlier, Gap, IsDone, Left, Lost, LostFile, Order, is_link};
pub use compare::{Compared, compare};
pub use history::{History, KINDS};
pub use lost::paths_of_call;
pub use plan::{before, no_longer_kept, restore};
pub use room::Room;
pub use select::Selection;
pub use target::{ComparedUnchanged, Known, MustAsk, RestorePlan, Target, Unchanged, Wanted};
pub use undo::undo;

#[cfg(test)]
mod tests;
