//! Lists, pipelines and compound commands, down to simple commands.

use super::reader::Reader;
use super::word::is_name;
use super::{Assignment, Command, Unparsed};

/// Words of the grammar that end a list of commands.
const CLOSING: &[&str] = &["then", "do", "done", "fi", "elif", "else", "esac", "}"];

impl Reader {
    pub fn program(&mut self) -> Result<(), Unparsed> {
        self.list()?;
        let is_all = self.cursor.peek().is_none() && self.pending.is_empty();
        is_all.then_some(()).ok_or(Unparsed)
    }

    fn linebreaks(&mut self) -> Result<(), Unparsed> {
        self.blanks();
        while self.cursor.peek() == Some('\n') {
            self.end_line()?;
            self.blanks();
        }
        Ok(())
    }

    /// The word at this position, if it is bare. Only a bare word can belong to the grammar.
    fn bare_word(&mut self) -> String {
        let from = self.cursor.mark();
        let mut word = String::new();
        while let Some(c) = self.cursor.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\'' | '"' | '\\' | '$' | '`' => {
                    word.clear();
                    break;
                }
                c => word.push(c),
            }
            self.cursor.next();
        }
        self.cursor.back_to(from);
        word
    }

    fn eat_keyword(&mut self, keyword: &str) -> bool {
        self.blanks();
        self.bare_word() == keyword && self.cursor.eat(keyword)
    }

    fn expect_keyword(&mut self, keyword: &str) -> Result<(), Unparsed> {
        self.eat_keyword(keyword).then_some(()).ok_or(Unparsed)
    }

    /// Commands up to the end of a list. The caller consumes what ends it.
    pub fn list(&mut self) -> Result<(), Unparsed> {
        loop {
            self.linebreaks()?;
            match self.cursor.peek() {
                None | Some(')') => return Ok(()),
                Some(';') if self.is_at_case_end() => return Ok(()),
                _ if CLOSING.contains(&self.bare_word().as_str()) => return Ok(()),
                _ => self.and_or()?,
            }
            self.blanks();
            match self.cursor.peek() {
                None | Some(')' | '\n') => {}
                Some(';') if self.is_at_case_end() => {}
                Some(';' | '&') => {
                    self.cursor.next();
                }
                Some(_) => return Err(Unparsed),
            }
        }
    }

    fn is_at_case_end(&mut self) -> bool {
        self.cursor.is_at(";;") || self.cursor.is_at(";&")
    }

    fn and_or(&mut self) -> Result<(), Unparsed> {
        self.pipeline()?;
        self.blanks();
        while self.cursor.eat("&&") || self.cursor.eat("||") {
            self.linebreaks()?;
            self.pipeline()?;
            self.blanks();
        }
        Ok(())
    }

    fn pipeline(&mut self) -> Result<(), Unparsed> {
        loop {
            if self.eat_keyword("time") {
                while self.eat_keyword("-p") || self.eat_keyword("--") {}
            } else if !self.eat_keyword("!") {
                break;
            }
        }
        self.command()?;
        self.blanks();
        while !self.cursor.is_at("||") && (self.cursor.eat("|&") || self.cursor.eat("|")) {
            self.linebreaks()?;
            self.command()?;
            self.blanks();
        }
        Ok(())
    }

    fn command(&mut self) -> Result<(), Unparsed> {
        self.blanks();
        if self.cursor.peek() != Some('(') {
            let word = self.bare_word();
            let read: fn(&mut Self) -> Result<(), Unparsed> = match word.as_str() {
                "{" => Self::group,
                "if" => Self::if_clause,
                "while" | "until" => Self::while_clause,
                "for" | "select" => Self::for_clause,
                "case" => Self::case_clause,
                "function" => Self::function,
                "!" | "in" => return Err(Unparsed),
                word if CLOSING.contains(&word) => return Err(Unparsed),
                _ => return self.simple(),
            };
            self.cursor.eat(&word);
            self.nested(read)?;
        } else {
            // Arithmetic in bash, two subshells in other shells.
            if self.cursor.is_at("((") {
                return Err(Unparsed);
            }
            self.nested(Self::subshell)?;
        }
        self.redirections_of_compound()
    }

    fn subshell(&mut self) -> Result<(), Unparsed> {
        self.cursor.eat("(");
        self.list()?;
        self.cursor.eat(")").then_some(()).ok_or(Unparsed)
    }

    fn group(&mut self) -> Result<(), Unparsed> {
        self.list()?;
        self.expect_keyword("}")
    }

    fn if_clause(&mut self) -> Result<(), Unparsed> {
        self.list()?;
        self.expect_keyword("then")?;
        self.list()?;
        while self.eat_keyword("elif") {
            self.list()?;
            self.expect_keyword("then")?;
            self.list()?;
        }
        if self.eat_keyword("else") {
            self.list()?;
        }
        self.expect_keyword("fi")
    }

    fn while_clause(&mut self) -> Result<(), Unparsed> {
        self.list()?;
        self.do_group()
    }

    fn do_group(&mut self) -> Result<(), Unparsed> {
        self.expect_keyword("do")?;
        self.list()?;
        self.expect_keyword("done")
    }

    fn for_clause(&mut self) -> Result<(), Unparsed> {
        self.blanks();
        let variable = self.word()?.ok_or(Unparsed)?;
        let variable = variable
            .bare()
            .filter(|name| is_name(name))
            .ok_or(Unparsed)?;
        // Programs read variables such as PATH. Loop variables in ordinary lines have lowercase names.
        if variable.contains(|c: char| c.is_ascii_uppercase()) {
            self.found.push(Command {
                assignments: vec![Assignment {
                    name: variable.to_owned(),
                    text: format!("{variable}=…"),
                }],
                ..Command::default()
            });
        }
        self.linebreaks()?;
        if self.eat_keyword("in") {
            self.blanks();
            while self.word()?.is_some() {
                self.blanks();
            }
        }
        self.blanks();
        if !self.is_at_case_end() {
            self.cursor.eat(";");
        }
        self.linebreaks()?;
        self.do_group()
    }

    fn case_clause(&mut self) -> Result<(), Unparsed> {
        self.blanks();
        self.word()?.ok_or(Unparsed)?;
        self.linebreaks()?;
        self.expect_keyword("in")?;
        loop {
            self.linebreaks()?;
            if self.eat_keyword("esac") {
                return Ok(());
            }
            self.cursor.eat("(");
            loop {
                self.blanks();
                self.word()?.ok_or(Unparsed)?;
                self.blanks();
                if !self.cursor.eat("|") {
                    break;
                }
            }
            if !self.cursor.eat(")") {
                return Err(Unparsed);
            }
            self.list()?;
            if !(self.cursor.eat(";;&") || self.cursor.eat(";;") || self.cursor.eat(";&")) {
                return self.expect_keyword("esac");
            }
        }
    }

    fn function(&mut self) -> Result<(), Unparsed> {
        self.blanks();
        let name = self.word()?.ok_or(Unparsed)?;
        self.blanks();
        if self.cursor.eat("(") {
            self.blanks();
            self.cursor.eat(")").then_some(()).ok_or(Unparsed)?;
        }
        self.function_body(name.text)
    }

    fn function_body(&mut self, name: String) -> Result<(), Unparsed> {
        self.defines = Some(name);
        self.linebreaks()?;
        self.nested(Self::command)
    }

    fn simple(&mut self) -> Result<(), Unparsed> {
        let mut command = Command::default();
        let mut is_empty = true;
        // `&>` is one redirection in bash; in other shells `&` ends the command.
        let mut must_end = false;
        loop {
            self.blanks();
            must_end |= self.cursor.is_at("&>");
            if self.redirection(&mut command.writes)? {
                is_empty = false;
                continue;
            }
            let Some(word) = self.word()? else {
                break;
            };
            if must_end {
                return Err(Unparsed);
            }
            let is_before_name = command.words.is_empty();
            let is_first = is_before_name && is_empty;
            is_empty = false;
            if is_before_name && let Some(assignment) = word.assignment() {
                command.assignments.push(assignment);
                continue;
            }
            // Subscripts are expressions, and bash runs substitutions in them.
            if is_before_name && word.text.contains("[") && word.text.contains("=") {
                return Err(Unparsed);
            }
            // `{name}>file` is one redirection in bash.
            if word.text.starts_with('{') && matches!(self.cursor.peek(), Some('<' | '>')) {
                return Err(Unparsed);
            }
            self.blanks();
            if is_first && self.cursor.eat("(") {
                self.blanks();
                self.cursor.eat(")").then_some(()).ok_or(Unparsed)?;
                return self.function_body(word.text);
            }
            command.words.push(word);
        }
        if is_empty {
            return Err(Unparsed);
        }
        self.found.push(command);
        Ok(())
    }
}
