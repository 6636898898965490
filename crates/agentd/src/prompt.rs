//! A prompt from the command line.

use crate::error::{Error, Exit};
use std::io::Read as _;

/// The prompt as it was given; `-` reads it from standard input.
pub fn read(given: &str) -> Result<String, Error> {
    let text = match given {
        "-" => from_stdin()?,
        given => given.to_owned(),
    };
    if text.trim().is_empty() {
        let error = Error::new(Exit::Usage, "the prompt is empty");
        return Err(error.next("pass the text of the prompt"));
    }
    Ok(text)
}

fn from_stdin() -> Result<String, Error> {
    let mut text = String::new();
    let most = agentd_core::frame::MAX_BYTES as u64;
    let read = std::io::stdin()
        .lock()
        .take(most + 1)
        .read_to_string(&mut text);
    let what = "the prompt cannot be read from standard input";
    read.map_err(|error| Error::of_file(what, &error))?;
    if text.len() as u64 > most {
        let what = format!("the prompt is longer than {most} bytes");
        return Err(Error::new(Exit::Refused, what)
            .next("put the text into a file, and name the file in the prompt"));
    }
    Ok(text)
}
