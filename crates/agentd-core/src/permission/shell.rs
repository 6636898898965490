//! Parses a shell line: which simple commands it runs, wherever they are in it.
//!
//! The grammar is the part of POSIX shell and bash in which both agree about what runs. A line outside of it is
//! [`Unparsed`] and never guessed at. A caller may rely on every command of a parsed line being in
//! [`Script::commands`], whether bash or another `/bin/sh` runs it. Commands that other commands run (`env`, `xargs`,
//! `sh -c` …) are found by [`runner`] after the line has been parsed.

mod cursor;
mod evaluates;
mod expansion;
mod grammar;
mod heredoc;
mod reader;
mod redirection;
mod runner;
mod runners;
mod shells;
mod word;

pub(super) use evaluates::git_options;
use reader::Reader;
pub(super) use word::Word;

/// A longer line is not parsed. Bounds the work that a hostile line can cause.
pub(super) const MAX_BYTES: usize = 64 * 1024;

/// Substitutions, groups, commands within commands. Bounds the stack that a hostile line can use.
const MAX_DEPTH: usize = 32;

/// The line is not in the grammar, or is too long or nested too deeply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unparsed;

#[derive(Debug, Default)]
pub(super) struct Script {
    /// In the order in which they were found, including those in substitutions.
    pub commands: Vec<Command>,
    /// A function that the line defines. It may have the name of a program that a rule allows.
    pub defines: Option<String>,
}

/// A simple command.
#[derive(Clone, Debug, Default)]
pub(super) struct Command {
    /// The assignments before its name.
    pub assignments: Vec<Assignment>,
    /// Its name and arguments. Empty for redirections and assignments without a command.
    pub words: Vec<Word>,
    /// The targets of its redirections that are opened for writing, or might be.
    pub writes: Vec<String>,
    /// The commands that it runs, as far as its arguments show.
    pub runs: Vec<Command>,
    /// The word up to which a pattern must be literal to show what this command runs.
    pub last_shown: usize,
    /// It only runs another command, so a rule for that command is enough.
    pub only_runs: bool,
    /// What decides at run time what is run.
    pub opaque: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub name: String,
    /// Including its name, as written before a command.
    pub text: String,
}

impl Command {
    fn opaque(what: impl Into<String>) -> Self {
        Self {
            opaque: Some(what.into()),
            ..Self::default()
        }
    }

    /// Visits this command and all commands that it runs.
    pub fn each<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        visit(self);
        for command in &self.runs {
            command.each(visit);
        }
    }
}

impl Script {
    pub fn each<'a>(&'a self, mut visit: impl FnMut(&'a Command)) {
        for command in &self.commands {
            command.each(&mut visit);
        }
    }

    /// What decides at run time what is run, if anything does.
    pub fn opaque(&self) -> Option<&str> {
        let mut found = None;
        self.each(|command| found = found.or(command.opaque.as_deref()));
        found
    }
}

pub(super) fn parse(line: &str) -> Result<Script, Unparsed> {
    parse_nested(line, 0)
}

/// Parses a script that is nested in `depth` others, such as the argument of `sh -c`.
fn parse_nested(line: &str, depth: usize) -> Result<Script, Unparsed> {
    // To bash a carriage return is an ordinary character of a word, and a reader can easily overlook it.
    let is_control = |c: char| c.is_control() && c != '\n' && c != '\t';
    if line.len() > MAX_BYTES || line.contains(is_control) {
        return Err(Unparsed);
    }
    let mut reader = Reader::new(line, depth);
    reader.program()?;
    let mut script = reader.finish();
    for command in &mut script.commands {
        runner::reveal(command, depth);
    }
    Ok(script)
}
