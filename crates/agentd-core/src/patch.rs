//! The patch format of the tool `apply_patch`: what it changes, and the new text of a file. Pure: the caller reads and
//! writes the files.
//!
//! ```text
//! *** Begin Patch
//! *** Add File: notes/new.txt
//! +one line
//! *** Update File: src/lib.rs
//! *** Move to: src/main.rs
//! @@ fn main() {
//!  a line that stays
//! -a line that goes
//! +a line that comes
//! *** Delete File: old.txt
//! *** End Patch
//! ```

mod apply;
mod parse;

pub use apply::{Unmatched, Why, apply};
pub use parse::PatchError;

use std::collections::HashSet;

/// The name of the tool that applies patches.
pub const TOOL: &str = "apply_patch";

/// A patch: what happens to each file, in the order of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    pub files: Vec<FilePatch>,
}

/// The change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilePatch {
    Add {
        path: String,
        text: String,
    },
    Delete {
        path: String,
    },
    Update {
        path: String,
        move_to: Option<String>,
        hunks: Vec<Hunk>,
    },
}

/// What happens to one path of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Parts of an existing file change.
    Update,
    /// A file is created, or replaced as a whole.
    Write,
    Remove,
}

/// A change in one place of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Lines of the file above the place, outermost first: the text after `@@`.
    pub headers: Vec<String>,
    pub lines: Vec<HunkLine>,
    /// The place is at the end of the file.
    pub is_at_end: bool,
}

/// A line of a hunk, without its sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HunkLine {
    Keep(String),
    Remove(String),
    Add(String),
}

impl Patch {
    pub fn parse(text: &str) -> Result<Self, PatchError> {
        parse::parse(text)
    }

    /// The paths that the patch reads, writes or removes, each once.
    pub fn paths(&self) -> Vec<&str> {
        let mut seen = HashSet::new();
        let paths = self.changes().map(|(path, _)| path);
        paths.filter(|path| seen.insert(*path)).collect()
    }

    /// Each path, and what happens to it. A file that is moved is removed in one place and written in another.
    pub fn changes(&self) -> impl Iterator<Item = (&str, Change)> {
        self.files.iter().flat_map(FilePatch::changes)
    }
}

impl FilePatch {
    /// The file that is changed.
    pub fn path(&self) -> &str {
        match self {
            Self::Add { path, .. } | Self::Delete { path } | Self::Update { path, .. } => path,
        }
    }

    /// That path, and the one that the file is moved to, with what happens to each.
    pub fn changes(&self) -> impl Iterator<Item = (&str, Change)> {
        let (change, moved) = match self {
            Self::Add { .. } => (Change::Write, None),
            Self::Delete { .. } => (Change::Remove, None),
            Self::Update { move_to: None, .. } => (Change::Update, None),
            Self::Update { move_to, .. } => (Change::Remove, move_to.as_deref()),
        };
        let moved = moved.map(|path| (path, Change::Write));
        std::iter::once((self.path(), change)).chain(moved)
    }
}

impl Hunk {
    /// The lines that the file must have at the place.
    pub fn old_lines(&self) -> Vec<&str> {
        let lines = self.lines.iter().filter_map(|line| match line {
            HunkLine::Keep(text) | HunkLine::Remove(text) => Some(text.as_str()),
            HunkLine::Add(_) => None,
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests;
