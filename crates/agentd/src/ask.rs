//! Questions to the user at the terminal.

use crate::error::{Error, Exit};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr,
};
use std::io::{self, IsTerminal as _};
use tokio::sync::oneshot;

/// Whether the user can be asked: stdin and stderr are terminals.
pub fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Drops what was typed so far: it is no answer to a question that was not shown yet.
pub fn forget_typed() {
    // If the terminal is gone, there is no input either.
    let _gone = tcflush(io::stdin(), QueueSelector::IFlush);
}

/// Asks a question and reads the answer without echo.
pub async fn hidden(question: &str) -> Result<Option<String>, Error> {
    let _shown_again = Unseen::new()?;
    let answer = line(question).await;
    // The newline was not echoed either.
    let mut terminal = crate::terminal::stderr();
    let _unseen = terminal.text("\n").and_then(|()| terminal.flush());
    answer
}

/// Switches echo off while it exists. Dropping it switches echo on again, also after Ctrl-C.
struct Unseen(Termios);

impl Unseen {
    fn new() -> Result<Self, Error> {
        let cannot = |error: rustix::io::Errno| {
            let what = "the echo of the terminal cannot be switched off";
            Error::new(Exit::Unavailable, what).because(error)
        };
        let before = tcgetattr(io::stdin()).map_err(cannot)?;
        let mut unseen = before.clone();
        unseen.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &unseen).map_err(cannot)?;
        Ok(Self(before))
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        // If the terminal is gone, there is no echo to restore.
        let _gone = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// Asks a question and returns the answer without its newline; none at the end of input.
///
/// The answer is read on a separate thread, so that Ctrl-C is handled in the meantime.
pub async fn line(question: &str) -> Result<Option<String>, Error> {
    let cannot = |error: io::Error| {
        Error::new(Exit::Unavailable, "the terminal cannot be read").because(error)
    };
    let mut terminal = crate::terminal::stderr();
    terminal
        .text(format_args!("{question} "))
        .and_then(|()| terminal.flush())
        .map_err(cannot)?;
    let (answer, answered) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        // The caller may have been dropped.
        let _gone = answer.send(read.map(|count| (count > 0).then_some(line)));
    });
    let line = match answered.await {
        Ok(read) => read.map_err(cannot)?,
        Err(_) => None,
    };
    if line.is_none() {
        // The end of input ends no line, and what follows must not stand behind the question.
        terminal.text("\n").map_err(cannot)?;
    }
    Ok(line.map(|line| line.trim().to_owned()))
}
