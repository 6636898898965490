//! Reads a shell line: which simple commands it runs, wherever they stand in it.
//!
//! The grammar is the part of POSIX shell and bash in which both agree about what runs. A line outside of
//! it is [`Unparsed`], never guessed at: a caller may rely on every command of a line that was parsed being
//! in [`Script::commands`], whether bash or another `/bin/sh` runs it. Commands that other commands run
//! (`env`, `xargs`, `sh -c` …) are found by [`runner`], after the line has been parsed.

mod cursor;
mod evaluates;
mod grammar;
mod heredoc;
mod redirection;
mod runner;
mod runners;
mod shells;
mod word;

pub(super) use evaluates::git_options;
use grammar::Reader;
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
    /// In the order in which they were found. Those of substitutions are among them.
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
    /// The targets of its redirections that open a file for writing, or might.
    pub writes: Vec<String>,
    /// The commands that it runs, as far as its arguments tell.
    pub runs: Vec<Command>,
    /// The word up to which a pattern must be literal to show what this command runs.
    pub last_shown: usize,
    /// It does nothing besides running another command, so a rule for that one is enough.
    pub only_runs: bool,
    /// What decides at run time what is run.
    pub opaque: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub name: String,
    /// With its name, as it stands before a command.
    pub text: String,
}

impl Command {
    fn opaque(what: impl Into<String>) -> Self {
        Self {
            opaque: Some(what.into()),
            ..Self::default()
        }
    }

    /// This command and all that it runs.
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

/// Parses a script within `depth` others, such as the argument of `sh -c`.
fn parse_nested(line: &str, depth: usize) -> Result<Script, Unparsed> {
    // A carriage return is a character of a word to bash and easy to overlook for a reader.
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
