//! Redirections: which files a command may write to.

use super::reader::Reader;
use super::{Command, Unparsed};

/// Operators that open a file for writing. A longer one comes before its prefix.
const WRITING: &[&str] = &["&>>", "&>", "<>", ">>", ">|", ">"];

/// Targets that are not regular files.
const HARMLESS: &[&str] = &["/dev/null", "/dev/stdout", "/dev/stderr"];

impl Reader {
    /// The redirections after a compound command.
    pub(super) fn redirections_of_compound(&mut self) -> Result<(), Unparsed> {
        let mut command = Command::default();
        self.blanks();
        while self.redirection(&mut command.writes)? {
            self.blanks();
        }
        if !command.writes.is_empty() {
            self.found.push(command);
        }
        Ok(())
    }

    /// Consumes a redirection, and records its target if it may be written to.
    pub(super) fn redirection(&mut self, writes: &mut Vec<String>) -> Result<bool, Unparsed> {
        let from = self.cursor.mark();
        let mut digits = 0;
        while self.cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.cursor.next();
            digits += 1;
        }
        let is_here = matches!(self.cursor.peek(), Some('<' | '>'));
        let is_of_both = digits == 0 && self.cursor.is_at("&>");
        if !is_here && !is_of_both {
            self.cursor.back_to(from);
            return Ok(false);
        }
        // Some shells treat more digits as an argument before a redirection without a number.
        if digits > 1 {
            return Err(Unparsed);
        }
        if self.cursor.is_at("<(") || self.cursor.is_at(">(") {
            self.cursor.back_to(from);
            return (digits == 0).then_some(false).ok_or(Unparsed);
        }
        if self.cursor.eat("<<<") {
            self.blanks();
            self.word()?.ok_or(Unparsed)?;
        } else if self.cursor.eat("<<") {
            self.announce_heredoc()?;
        } else if self.cursor.eat("<&") || self.cursor.eat(">&") {
            self.copy(writes)?;
        } else {
            let is_write = WRITING.iter().any(|operator| self.cursor.eat(operator));
            if !is_write {
                self.cursor.eat("<");
            }
            self.blanks();
            let target = self.word()?.ok_or(Unparsed)?;
            let text = target.text.as_str();
            let is_harmless = if is_write {
                HARMLESS.contains(&text)
            } else {
                // Bash opens a network connection.
                !text.starts_with("/dev/tcp/") && !text.starts_with("/dev/udp/")
            };
            if !is_harmless || !target.is_certain() {
                writes.push(target.text);
            }
        }
        Ok(true)
    }

    /// Reads what follows `>&` or `<&`: a number, `-`, or in bash also a file.
    fn copy(&mut self, writes: &mut Vec<String>) -> Result<(), Unparsed> {
        // In bash `>&-` is a separate operator, which a word may follow immediately.
        if self.cursor.eat("-") {
            let is_end = self.word()?.is_none();
            return is_end.then_some(()).ok_or(Unparsed);
        }
        self.blanks();
        let target = self.word()?.ok_or(Unparsed)?;
        // Bash expands a file name here twice, so quotes do not protect its contents.
        let text = target.bare().ok_or(Unparsed)?;
        if text.chars().any(|c| !c.is_ascii_digit()) {
            writes.push(target.text);
        }
        Ok(())
    }
}
