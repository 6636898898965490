//! Reads words: quotes, and the expansions and substitutions in them.

use super::reader::Reader;
use super::word::{Word, WordBuilder};
use super::{Command, Unparsed};

impl Reader {
    /// The word that begins here; `None` at an operator, a blank or the end.
    pub(super) fn word(&mut self) -> Result<Option<Word>, Unparsed> {
        let mut word = WordBuilder::default();
        let from = self.cursor.mark();
        let has_pending = !self.pending.is_empty();
        while let Some(c) = self.cursor.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' => break,
                '<' | '>' if !self.cursor.is_at("<(") && !self.cursor.is_at(">(") => break,
                '<' | '>' if word.has_begun => return Err(Unparsed),
                '<' | '>' => {
                    let from = self.cursor.mark();
                    self.cursor.next();
                    self.cursor.next();
                    self.substitution()?;
                    word.push_expansion(&self.cursor.since(from));
                }
                '\'' => {
                    self.cursor.next();
                    let text = self.cursor.up_to('\'').ok_or(Unparsed)?;
                    word.push_quoted(&text);
                }
                '"' => self.double_quoted(&mut word)?,
                '\\' => {
                    self.cursor.next();
                    let c = self.cursor.next_raw().ok_or(Unparsed)?;
                    word.push_quoted(c.encode_utf8(&mut [0; 4]));
                }
                '$' => self.dollar(&mut word, false)?,
                '`' => self.backquoted(&mut word)?,
                c => {
                    self.cursor.next();
                    word.push_bare(c);
                }
            }
        }
        // Shells disagree about where the body begins if a word continues on the next line.
        if has_pending && self.cursor.since(from).contains('\n') {
            return Err(Unparsed);
        }
        Ok(word.finish())
    }

    fn double_quoted(&mut self, word: &mut WordBuilder) -> Result<(), Unparsed> {
        self.cursor.next();
        word.push_quoted("");
        loop {
            match self.cursor.peek().ok_or(Unparsed)? {
                '"' => {
                    self.cursor.next();
                    return Ok(());
                }
                '\\' => {
                    self.cursor.next();
                    let c = self.cursor.next_raw().ok_or(Unparsed)?;
                    if !matches!(c, '$' | '`' | '"' | '\\') {
                        word.push_quoted("\\");
                    }
                    word.push_quoted(c.encode_utf8(&mut [0; 4]));
                }
                '$' => self.dollar(word, true)?,
                '`' => self.backquoted(word)?,
                c => {
                    self.cursor.next();
                    word.push_quoted(c.encode_utf8(&mut [0; 4]));
                }
            }
        }
    }

    /// Reads an expansion that begins with `$`.
    pub(super) fn dollar(
        &mut self,
        word: &mut WordBuilder,
        is_quoted: bool,
    ) -> Result<(), Unparsed> {
        let from = self.cursor.mark();
        self.cursor.next();
        match self.cursor.peek() {
            Some('(') => {
                self.cursor.next();
                match self.cursor.peek() {
                    Some('(') => self.arithmetic()?,
                    _ => self.substitution()?,
                }
            }
            Some('{') => {
                self.cursor.next();
                self.nested(Self::parameter)?;
            }
            // Arithmetic in bash, text in other shells.
            Some('[') => return Err(Unparsed),
            Some('\'') if !is_quoted => {
                self.cursor.next();
                let text = self.cursor.up_to('\'').ok_or(Unparsed)?;
                // Whether `\'` ends the string depends on the shell.
                if text.ends_with('\\') {
                    return Err(Unparsed);
                }
                if !text.contains('\\') {
                    // In shells that do not support it, the `$` is part of the word.
                    word.depends_from(word.text.len());
                    word.push_quoted(&text);
                    return Ok(());
                }
            }
            // Bash translates the string.
            Some('"') if !is_quoted => {}
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.name(),
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.cursor.next();
            }
            _ => {
                word.push_quoted("$");
                return Ok(());
            }
        }
        word.push_expansion(&self.cursor.since(from));
        Ok(())
    }

    fn name(&mut self) {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        while self.cursor.peek().is_some_and(is_of_name) {
            self.cursor.next();
        }
    }

    /// The commands of `$(…)` or `<(…)`, after its parenthesis.
    fn substitution(&mut self) -> Result<(), Unparsed> {
        let pending = std::mem::take(&mut self.pending);
        self.nested(Self::list)?;
        let is_closed = self.cursor.eat(")") && self.pending.is_empty();
        self.pending = pending;
        is_closed.then_some(()).ok_or(Unparsed)
    }

    pub(super) fn backquoted(&mut self, word: &mut WordBuilder) -> Result<(), Unparsed> {
        let from = self.cursor.mark();
        self.cursor.next();
        let text = self.cursor.up_to('`').ok_or(Unparsed)?;
        // The meaning of a backslash here depends on the surrounding quotes.
        if text.contains('\\') {
            return Err(Unparsed);
        }
        self.nested_text(&text, Self::program)?;
        word.push_expansion(&self.cursor.since(from));
        Ok(())
    }

    /// `$((…))`, from the second parenthesis on.
    fn arithmetic(&mut self) -> Result<(), Unparsed> {
        let from = self.cursor.mark();
        self.cursor.next();
        let mut depth = 2;
        let mut has_names = false;
        while depth > 0 {
            let c = self.cursor.next().ok_or(Unparsed)?;
            match c {
                '(' => depth += 1,
                // If the next character is not the second parenthesis, this was a group of commands.
                ')' if depth == 2 && self.cursor.peek() != Some(')') => return Err(Unparsed),
                ')' => depth -= 1,
                c if c.is_ascii_alphabetic() || c == '_' => has_names = true,
                '$' => match self.cursor.peek() {
                    Some(c) if c.is_ascii_alphanumeric() || c == '_' => has_names = true,
                    _ => return Err(Unparsed),
                },
                c if c.is_ascii_digit() || " \t+-*/%<>=!&|^~?:,".contains(c) => {}
                _ => return Err(Unparsed),
            }
        }
        // The value of a name is an expression too, and bash runs substitutions in it.
        if has_names {
            let source = format!("$({}", self.cursor.since(from));
            self.found.push(Command::opaque(source));
        }
        Ok(())
    }

    /// `${…}`, after the brace. Only forms that do not run the value of a variable.
    fn parameter(&mut self) -> Result<(), Unparsed> {
        let is_length = self.cursor.eat("#");
        if is_length && self.cursor.eat("}") {
            return Ok(());
        }
        match self.cursor.peek().ok_or(Unparsed)? {
            c if c.is_ascii_alphanumeric() || c == '_' => self.name(),
            '@' | '*' | '?' | '$' | '-' => {
                self.cursor.next();
            }
            _ => return Err(Unparsed),
        }
        if self.cursor.eat("[") {
            let is_all = self.cursor.eat("@") || self.cursor.eat("*");
            while !is_all && self.cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
                self.cursor.next();
            }
            if !self.cursor.eat("]") {
                return Err(Unparsed);
            }
        }
        match self.cursor.next().ok_or(Unparsed)? {
            '}' => Ok(()),
            _ if is_length => Err(Unparsed),
            ':' if self.cursor.eat("-") || self.cursor.eat("+") || self.cursor.eat("?") => {
                self.operand()
            }
            // A substring: `${x:1:2}`. Anything other than numbers is arithmetic.
            ':' => loop {
                match self.cursor.next().ok_or(Unparsed)? {
                    '}' => return Ok(()),
                    c if c.is_ascii_digit() || c == ':' => {}
                    _ => return Err(Unparsed),
                }
            },
            '-' | '+' | '?' | '#' | '%' | '/' | '^' | ',' => self.operand(),
            _ => Err(Unparsed),
        }
    }

    fn operand(&mut self) -> Result<(), Unparsed> {
        let mut ignored = WordBuilder::default();
        loop {
            match self.cursor.peek().ok_or(Unparsed)? {
                '}' => {
                    self.cursor.next();
                    return Ok(());
                }
                '$' => self.dollar(&mut ignored, true)?,
                '`' => self.backquoted(&mut ignored)?,
                // Their meaning depends on the shell and on surrounding quotes.
                c if "'\"\\{()<>&;|\n".contains(c) => return Err(Unparsed),
                _ => {
                    self.cursor.next();
                }
            }
        }
    }
}
