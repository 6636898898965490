//! A prompt from the command line and from standard input.

use crate::error::{Error, Exit};
use crate::output::Output;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use std::io::{self, Read as _};

/// How long a pipe or a socket may take to send its first byte, if there is a prompt without it. Programs that start
/// others often leave a pipe open in which nothing is ever written.
const FIRST_BYTE: Timespec = Timespec {
    tv_sec: 3,
    tv_nsec: 0,
};
const SILENT: &str = "warning: standard input is open, but nothing arrived within 3 seconds: the prompt is sent \
                      without it (--stdin waits longer, --no-stdin does not wait)";
/// Between the prompt and the piped text.
const BLANK_LINE: &str = "\n\n";

/// What becomes of standard input when a prompt is given.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct StdinOptions {
    /// Wait for piped input for as long as it takes to begin [default: 3 seconds]
    #[arg(long = "stdin", conflicts_with = "never")]
    always: bool,
    /// Do not read standard input
    #[arg(long = "no-stdin")]
    never: bool,
}

/// The prompt as it was given; `-` reads it from standard input.
pub fn read(given: &str) -> Result<String, Error> {
    match given {
        "-" => checked(from_stdin(0)?),
        given => checked(given.to_owned()),
    }
}

/// The prompt and, after a blank line, the text that was piped into the command. Without a prompt, the piped text is the
/// prompt.
pub fn with_stdin(
    given: Option<&str>,
    options: StdinOptions,
    out: &mut Output,
) -> Result<String, Error> {
    match (given, options.never) {
        (None | Some("-"), true) => Err(no_prompt()),
        (None, false) if kind() == Stdin::Other => Err(no_prompt()),
        (None | Some("-"), false) => checked(from_stdin(0)?),
        (Some(given), true) => checked(given.to_owned()),
        (Some(given), false) => add_stdin(checked(given.to_owned())?, options.always, out),
    }
}

fn add_stdin(given: String, waits: bool, out: &mut Output) -> Result<String, Error> {
    match kind() {
        Stdin::Other => return Ok(given),
        Stdin::Stream if !waits && !begins()? => {
            out.aside(SILENT)?;
            return Ok(given);
        }
        Stdin::Stream | Stdin::File => {}
    }
    let piped = from_stdin(given.len() + BLANK_LINE.len())?;
    Ok(match piped.trim().is_empty() {
        true => given,
        false => given + BLANK_LINE + &piped,
    })
}

fn checked(text: String) -> Result<String, Error> {
    if text.trim().is_empty() {
        return Err(
            Error::new(Exit::Usage, "the prompt is empty").next("pass the text of the prompt")
        );
    }
    Ok(text)
}

fn no_prompt() -> Error {
    Error::new(Exit::Usage, "there is no prompt")
        .next("pass it as an argument, or pipe it into the command")
}

/// What standard input is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stdin {
    /// A pipe or a socket: it may stay open without data.
    Stream,
    /// A regular file: it has an end.
    File,
    /// A terminal, `/dev/null` or another device. It has no text for the prompt.
    Other,
}

fn kind() -> Stdin {
    let Ok(about) = fstat(io::stdin()) else {
        return Stdin::Other;
    };
    match FileType::from_raw_mode(about.st_mode) {
        FileType::Fifo | FileType::Socket => Stdin::Stream,
        FileType::RegularFile => Stdin::File,
        _ => Stdin::Other,
    }
}

/// Whether the stream sends something or ends soon.
fn begins() -> Result<bool, Error> {
    let stdin = io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    loop {
        match poll(&mut watched, Some(&FIRST_BYTE)) {
            Ok(ready) => return Ok(ready > 0),
            // A signal whose handler returned.
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(unreadable(&error.into())),
        }
    }
}

fn unreadable(error: &io::Error) -> Error {
    Error::of_file("the prompt cannot be read from standard input", error)
}

/// All of standard input, if it fits into a prompt that already has this many bytes.
fn from_stdin(used: usize) -> Result<String, Error> {
    let most = agentd_core::frame::MAX_TEXT_BYTES;
    let room = most.saturating_sub(used);
    let mut bytes = Vec::new();
    let read = io::stdin()
        .lock()
        .take(room as u64 + 1)
        .read_to_end(&mut bytes);
    read.map_err(|error| unreadable(&error))?;
    if bytes.len() > room {
        let what = format!("the prompt is longer than {most} bytes");
        return Err(Error::new(Exit::Refused, what).next(
            "save it as a file, and name the path in the prompt: the agent reads what it needs",
        ));
    }
    String::from_utf8(bytes).map_err(|_| {
        Error::new(Exit::Usage, "standard input is not text")
            .because("it is not valid UTF-8")
            .next("an image or a PDF: save it as a file, and attach it with --attach FILE; anything else: name the path of the file in the prompt")
    })
}
