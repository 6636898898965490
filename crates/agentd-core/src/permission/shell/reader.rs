//! The state of the parser. The files that read a part of the grammar add their methods to [`Reader`].

use super::cursor::Cursor;
use super::{Command, MAX_DEPTH, Script, Unparsed};

pub(super) struct Reader {
    pub cursor: Cursor,
    pub found: Vec<Command>,
    /// Here-documents that this line announces. Their text begins after the line.
    pub pending: Vec<HereDocument>,
    /// The function that the text defines, if any.
    pub defines: Option<String>,
    depth: usize,
}

impl Reader {
    pub fn new(line: &str, depth: usize) -> Self {
        Self {
            cursor: Cursor::new(line),
            found: Vec::new(),
            pending: Vec::new(),
            defines: None,
            depth,
        }
    }

    pub fn finish(self) -> Script {
        Script {
            commands: self.found,
            defines: self.defines,
        }
    }

    pub fn nested(&mut self, read: fn(&mut Self) -> Result<(), Unparsed>) -> Result<(), Unparsed> {
        if self.depth >= MAX_DEPTH {
            return Err(Unparsed);
        }
        self.depth += 1;
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    /// Parses a text within this one, such as the text between backquotes.
    pub fn nested_text(
        &mut self,
        text: &str,
        read: fn(&mut Self) -> Result<(), Unparsed>,
    ) -> Result<(), Unparsed> {
        let mut inner = Self::new(text, self.depth);
        inner.nested(read)?;
        self.found.append(&mut inner.found);
        self.defines = self.defines.take().or(inner.defines);
        Ok(())
    }

    /// Skips blanks and a comment.
    pub fn blanks(&mut self) {
        while let Some(' ' | '\t') = self.cursor.peek() {
            self.cursor.next();
        }
        if self.cursor.peek() == Some('#') {
            while self.cursor.peek_raw().is_some_and(|c| c != '\n') {
                self.cursor.next_raw();
            }
        }
    }
}

/// A here-document whose text has not been read yet.
pub(super) struct HereDocument {
    pub end: String,
    /// With a quoted delimiter, nothing in the text is expanded.
    pub is_literal: bool,
    pub drops_tabs: bool,
}
