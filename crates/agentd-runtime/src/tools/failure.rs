//! Why a call failed, as text for the model.

use agentd_core::message::{Block, CallOutcome};
use agentd_core::turn::{Finished, Prepared};
use std::fmt::Display;
use std::io::ErrorKind;

/// A call that cannot be carried out; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure(String);

impl Failure {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// `what` could not be done with the file `path`, as the path is shown to the model.
    pub fn io(what: &str, path: impl Display, error: &std::io::Error) -> Self {
        let next = match error.kind() {
            ErrorKind::NotFound => " Use list_files to see what there is.",
            _ => "",
        };
        Self(format!("Cannot {what} {path}: {error}.{next}"))
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

impl From<Failure> for Finished {
    fn from(failure: Failure) -> Self {
        said(CallOutcome::Error, failure.0)
    }
}

impl From<Failure> for Prepared {
    fn from(failure: Failure) -> Self {
        Self::Refuse {
            outcome: CallOutcome::Error,
            blocks: vec![Block::text(failure.0)],
        }
    }
}

/// A result that consists of one text.
pub(super) fn said(outcome: CallOutcome, text: impl Into<String>) -> Finished {
    Finished::new(outcome, vec![Block::text(text)])
}

pub(super) fn done(result: Result<String, Failure>) -> Finished {
    match result {
        Ok(text) => said(CallOutcome::Ok, text),
        Err(failure) => failure.into(),
    }
}
