//! A question to whoever sits at the terminal.

use crate::error::{Error, Exit};
use std::io::{self, IsTerminal as _};
use tokio::sync::oneshot;

/// Whether somebody can be asked.
pub fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
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
