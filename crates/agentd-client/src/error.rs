//! What can go wrong, by the same kinds in HTTP, in the exit status and in JSON.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// An RFC 9457 problem, as the daemon sends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{title}")]
pub struct Problem {
    /// `about:blank` and the kind.
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
    /// What was sent makes no sense.
    Invalid,
    NotFound,
    /// It contradicts what is there: a taken name, another reset, an old generation.
    Conflict,
    /// It is not for this agent, or not for this caller.
    Refused,
    /// The user has to decide something first, which `next` names.
    Waiting,
    /// Past a limit, which the title names.
    TooLarge,
    /// Not now: try again.
    Unavailable,
    /// Something is wrong with the daemon or its disk.
    Internal,
}

impl Kind {
    pub const fn status(self) -> u16 {
        match self {
            Self::Invalid => 400,
            Self::NotFound => 404,
            Self::Conflict | Self::Waiting => 409,
            Self::Refused => 403,
            Self::TooLarge => 413,
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
    /// Nobody listens there.
    #[error("no daemon listens at {path}")]
    NotRunning {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The socket is another user's: nothing was sent to it.
    #[error("the daemon at {path} belongs to another user")]
    Stranger { path: PathBuf, uid: u32 },
    /// The connection broke in the middle.
    #[error("the connection to the daemon broke: {0}")]
    Broken(String),
    /// The daemon said no.
    #[error(transparent)]
    Problem(#[from] Box<Problem>),
    /// What it said makes no sense: it is of another version.
    #[error("the daemon's answer cannot be read: {0}")]
    Strange(String),
}

impl Error {
    /// The daemon is not there any more; all that was accepted is.
    pub const fn is_gone(&self) -> bool {
        matches!(self, Self::NotRunning { .. } | Self::Broken(_))
    }
}
