//! A question to whoever sits at the terminal.

use crate::error::{Error, Exit};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, IsTerminal as _};
use tokio::sync::oneshot;

/// Whether somebody can be asked.
pub fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// What is answered, and not shown on the terminal.
pub async fn hidden(question: &str) -> Result<Option<String>, Error> {
    let _shown_again = Unseen::new()?;
    let answer = line(question).await;
    // The end of the line was not shown either.
    let mut terminal = crate::terminal::stderr();
    let _unseen = terminal.text("\n").and_then(|()| terminal.flush());
    answer
}

/// Typing is not shown for as long as this is there, and shown again also where Ctrl-C ends the question.
struct Unseen(Termios);

impl Unseen {
    fn new() -> Result<Self, Error> {
        let cannot = |error: rustix::io::Errno| {
            Error::new(Exit::Unavailable, "the terminal shows what is typed").because(error)
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
        // Where the terminal is gone, there is nothing left to show.
        let _gone = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// What is answered, without the end of its line; none where the input ends.
///
/// It is read on a thread of its own: Ctrl-C must be heard in the meantime.
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
        // Whoever asked may have gone.
        let _gone = answer.send(read.map(|count| (count > 0).then_some(line)));
    });
    match answered.await {
        Ok(read) => Ok(read.map_err(cannot)?.map(|line| line.trim().to_owned())),
        Err(_) => Ok(None),
    }
}
