//! Here-documents: the lines after the one that announces them, and the substitutions in them.

use super::Unparsed;
use super::reader::{HereDocument, Reader};
use super::word::WordBuilder;

impl Reader {
    /// Reads what follows `<<`. Only plain delimiters are accepted, on which all shells agree.
    pub(super) fn announce_heredoc(&mut self) -> Result<(), Unparsed> {
        let drops_tabs = self.cursor.eat("-");
        self.blanks();
        let quote = match self.cursor.peek() {
            Some(c @ ('\'' | '"' | '\\')) => {
                self.cursor.next();
                Some(c)
            }
            _ => None,
        };
        let mut end = String::new();
        while let Some(c) = self.cursor.peek_raw() {
            if !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '.') {
                break;
            }
            end.push(c);
            self.cursor.next_raw();
        }
        let closing = quote.filter(|quote| *quote != '\\');
        if end.is_empty() || closing.is_some_and(|quote| self.cursor.next_raw() != Some(quote)) {
            return Err(Unparsed);
        }
        match self.cursor.peek() {
            None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | ')' | '<' | '>') => {}
            Some(_) => return Err(Unparsed),
        }
        self.pending.push(HereDocument {
            end,
            is_literal: quote.is_some(),
            drops_tabs,
        });
        Ok(())
    }

    /// Consumes the end of a line and the here-documents that the line announced.
    pub(super) fn end_line(&mut self) -> Result<(), Unparsed> {
        self.cursor.next();
        for heredoc in std::mem::take(&mut self.pending) {
            let mut body = String::new();
            loop {
                let (line, is_last) = self.raw_line();
                let line = if heredoc.drops_tabs {
                    line.trim_start_matches('\t')
                } else {
                    &line
                };
                if line == heredoc.end {
                    break;
                }
                if is_last {
                    return Err(Unparsed);
                }
                body.push_str(line);
                body.push('\n');
            }
            if !heredoc.is_literal {
                self.nested_text(&body, Self::heredoc_body)?;
            }
        }
        Ok(())
    }

    /// The next line as written, and whether the text ends with it.
    fn raw_line(&mut self) -> (String, bool) {
        let mut line = String::new();
        while let Some(c) = self.cursor.next_raw() {
            if c == '\n' {
                return (line, false);
            }
            line.push(c);
        }
        (line, true)
    }

    fn heredoc_body(&mut self) -> Result<(), Unparsed> {
        let mut ignored = WordBuilder::default();
        while let Some(c) = self.cursor.peek_raw() {
            match c {
                // Shells disagree about a delimiter after a continued line.
                '\\' => {
                    self.cursor.next_raw();
                    if self.cursor.next_raw() == Some('\n') {
                        return Err(Unparsed);
                    }
                }
                '$' => self.dollar(&mut ignored, true)?,
                '`' => self.backquoted(&mut ignored)?,
                _ => {
                    self.cursor.next_raw();
                }
            }
        }
        Ok(())
    }
}
