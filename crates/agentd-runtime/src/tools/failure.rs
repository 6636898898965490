//! Why a call failed, as text for the model.

use agentd_core::message::{Block, CallOutcome};
use agentd_core::turn::{Finished, Prepared};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::io::ErrorKind;

/// A call that cannot be carried out; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Failure {
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stale: Option<Box<Stale>>,
}

/// The model knows another content of a file than the present one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stale {
    /// As it is shown to the model.
    pub name: String,
    /// The hash of the content that the model knows.
    pub known: String,
    /// The present content, if it is a text and not large.
    pub now: Option<String>,
}

impl Failure {
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            stale: None,
        }
    }

    /// `what` could not be done with the file `path`, as the path is shown to the model.
    pub fn io(what: &str, path: impl Display, error: &std::io::Error) -> Self {
        let next = match error.kind() {
            ErrorKind::NotFound => " Use list_files to see what there is.",
            _ => "",
        };
        Self::new(format!("Cannot {what} {path}: {error}.{next}"))
    }

    /// What has changed can be told by the process that remembers what the model knows.
    pub fn stale(text: String, stale: Stale) -> Self {
        Self {
            text,
            stale: Some(Box::new(stale)),
        }
    }

    pub fn as_stale(&self) -> Option<&Stale> {
        self.stale.as_deref()
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

impl From<Failure> for Finished {
    fn from(failure: Failure) -> Self {
        said(CallOutcome::Error, failure.text)
    }
}

impl From<Failure> for Prepared {
    fn from(failure: Failure) -> Self {
        Self::Refuse {
            outcome: CallOutcome::Error,
            blocks: vec![Block::text(failure.text)],
        }
    }
}

pub(super) fn no_sandbox(error: agentd_sandbox::Error) -> Failure {
    Failure::new(format!("The sandbox cannot be set up: {error}."))
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
