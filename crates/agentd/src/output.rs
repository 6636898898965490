//! The output of a command: coloured only on a terminal (and not if `NO_COLOR` is set). Every failed write is
//! returned as an error, so that a closed pipe ends the command instead of crashing it.

use crate::error::Error;
use crate::terminal::{self, Stream};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, IsTerminal as _};

pub use crate::terminal::{BAD, GOOD, HEADING, QUIET};

/// The width of a progress line.
const PROGRESS_WIDTH: usize = 72;

pub struct Output {
    stream: Stream,
    /// Standard output is a terminal: progress lines are shown.
    is_watched: bool,
    /// A progress line is shown and must be cleared before the next line.
    in_progress: bool,
}

impl Output {
    pub fn stdout() -> Self {
        Self {
            stream: terminal::stdout(),
            is_watched: io::stdout().is_terminal(),
            in_progress: false,
        }
    }

    #[cfg(test)]
    pub fn to(stream: impl io::Write + 'static) -> Self {
        Self {
            stream: Stream::new(stream, false),
            is_watched: false,
            in_progress: false,
        }
    }

    pub fn line(&mut self, text: impl Display) -> Result<(), Error> {
        self.clear_progress()
            .and_then(|()| self.stream.text(format_args!("{text}\n")))
            .map_err(|error| Error::of_output(&error))
    }

    /// Text without a newline of its own.
    pub fn piece(&mut self, text: &str) -> Result<(), Error> {
        self.clear_progress()
            .and_then(|()| self.stream.text(text))
            .and_then(|()| self.stream.flush())
            .map_err(|error| Error::of_output(&error))
    }

    /// One object on a line.
    pub fn json(&mut self, object: &impl Serialize) -> Result<(), Error> {
        match serde_json::to_string(object) {
            Ok(text) => self
                .clear_progress()
                .and_then(|()| self.stream.json(&text))
                .and_then(|()| self.stream.own("\n"))
                .map_err(|error| Error::of_output(&error)),
            Err(error) => Err(Error::of_output(&error.into())),
        }
    }

    /// A line on standard error: a program that reads the output does not see it.
    pub fn aside(&mut self, text: impl Display) -> Result<(), Error> {
        self.clear_progress()
            .and_then(|()| terminal::stderr().text(format_args!("{text}\n")))
            .map_err(|error| Error::of_output(&error))
    }

    /// Whether standard output is a terminal.
    pub const fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// The width of the terminal; none if standard output is not a terminal.
    pub fn width(&self) -> Option<u16> {
        if !self.is_watched {
            return None;
        }
        let columns = std::env::var("COLUMNS").ok();
        let given = columns.and_then(|columns| columns.parse().ok());
        let asked = || rustix::termios::tcgetwinsize(io::stdout()).ok();
        given
            .or_else(|| asked().map(|size| size.ws_col))
            .filter(|columns| *columns > 0)
    }

    /// A line that the next one replaces; only on a terminal.
    pub fn progress(&mut self, text: impl Display) -> Result<(), Error> {
        if !self.is_watched {
            return Ok(());
        }
        self.in_progress = true;
        let line = format!("{:<PROGRESS_WIDTH$}", text.to_string());
        self.stream
            .own("\r")
            .and_then(|()| self.stream.text(line))
            .and_then(|()| self.stream.flush())
            .map_err(|error| Error::of_output(&error))
    }

    fn clear_progress(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.in_progress) {
            let blank = format!("\r{:PROGRESS_WIDTH$}\r", "");
            self.stream.own(&blank)?;
        }
        Ok(())
    }
}
