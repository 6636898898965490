//! Errors. HTTP status, exit code and JSON use the same kinds.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// An RFC 9457 problem, as the daemon sends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{title}")]
pub struct Problem {
    /// Always `about:blank`; see `kind`.
    #[serde(rename = "type")]
    pub uri: String,
    pub kind: Kind,
    /// What happened.
    pub title: String,
    pub status: u16,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The request is not valid.
    Invalid,
    NotFound,
    /// A shortened id that several ids begin with.
    Ambiguous,
    /// It conflicts with the present state: a taken name, another reset, an old generation.
    Conflict,
    /// Not allowed for this agent or this caller.
    Refused,
    /// The user must make a decision first, which `next` names.
    Waiting,
    /// A limit was exceeded, which the title names.
    TooLarge,
    /// The agent has as many queued prompts as it may have: try again when some are answered.
    QueueFull,
    /// Not possible now: try again.
    Unavailable,
    /// A fault of the daemon or its disk.
    Internal,
}

impl Kind {
    pub const fn status(self) -> u16 {
        match self {
            Self::Invalid | Self::Ambiguous => 400,
            Self::NotFound => 404,
            Self::Conflict | Self::Waiting => 409,
            Self::Refused => 403,
            Self::TooLarge => 413,
            Self::QueueFull => 429,
            Self::Unavailable => 503,
            Self::Internal => 500,
        }
    }
}

impl Problem {
    pub fn new(kind: Kind, title: impl Into<String>) -> Self {
        Self {
            uri: "about:blank".to_owned(),
            kind,
            title: title.into(),
            status: kind.status(),
            detail: None,
            next: None,
        }
    }

    pub fn because(mut self, detail: impl ToString) -> Self {
        self.detail = Some(detail.to_string());
        self
    }

    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No process listens on the socket.
    #[error("no daemon listens at {path}")]
    NotRunning {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The socket belongs to another user: nothing was sent to it.
    #[error("the daemon at {path} belongs to another user")]
    Stranger { path: PathBuf, uid: u32 },
    /// The connection broke before the answer was complete.
    #[error("the connection to the daemon broke: {0}")]
    Broken(String),
    /// The daemon answered with a problem.
    #[error(transparent)]
    Problem(#[from] Box<Problem>),
    /// The answer cannot be parsed: the daemon may have another version.
    #[error("the daemon's answer cannot be read: {0}")]
    Strange(String),
}

impl Error {
    /// The daemon is not running, or died before it answered. Everything that it acknowledged is on disk.
    pub const fn is_gone(&self) -> bool {
        matches!(self, Self::NotRunning { .. } | Self::Broken(_))
    }
}
