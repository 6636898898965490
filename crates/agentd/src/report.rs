//! Reports an error: as text on standard error, as an object with `--json`, and as the exit code.

use crate::error::{Error, Format};
use crate::output::Output;
use crate::terminal;
use std::process::ExitCode;

/// Prints the error and returns the exit code. With `--json`, standard output gets it as an object.
pub fn report(error: &Error, format: Format) -> ExitCode {
    if format == Format::Json && error.has_object() {
        // If stdout is closed, the object cannot be delivered; the exit code still reports the error.
        let _ignored = Output::stdout().json(&error.failure());
    }
    if error.has_message() {
        // If stderr is closed, only the exit code reports the error.
        let _ignored = terminal::stderr().text(format_args!("{error}\n"));
    }
    ExitCode::from(error.code())
}
