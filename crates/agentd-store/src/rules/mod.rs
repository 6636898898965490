//! The rules that are the same for every backend: what an append, a purge and an import may do, how a journal is
//! folded, and what counts as damage.
//!
//! Nothing here reads or writes files. A backend passes in what it has read, and a rule that needs more asks for it
//! through [`Journals`].

pub mod append;
pub mod draft;
pub mod export;
pub mod fold;
pub mod import;
pub mod lineage;
pub mod names;
pub mod purge;
pub mod purge_files;
pub mod verify;

mod journals;

pub use journals::{Branch, Journals};
