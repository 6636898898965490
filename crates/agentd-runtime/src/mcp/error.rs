//! Why a server cannot be used. The texts are parts of sentences, for users and models.

use std::time::Duration;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no MCP server `{0}` in the settings")]
    NoSuchServer(String),
    #[error("{0}")]
    Settings(String),
    #[error("it cannot be started: {0}")]
    CannotStart(String),
    #[error("it ended before it answered{0}")]
    Ended(String),
    #[error("it did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    #[error(
        "it requires OAuth, which agentd does not support; create an access token and pass it in `headers` as `Authorization: Bearer ${{NAME}}`"
    )]
    OAuth,
    #[error("it sent more than {} KiB without an answer", super::opening::MOST_BYTES / 1024)]
    Flood,
    #[error("{0}")]
    Protocol(String),
    /// It does not know this way to begin.
    #[error("{0}")]
    Misunderstood(String),
    #[error("{last}; the next attempt is in {} s", .wait.as_secs() + 1)]
    Waiting { last: String, wait: Duration },
    #[error("it is closed")]
    Closed,
}

impl Error {
    /// The text without what changes from one attempt to the next.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Waiting { last, .. } => last.clone(),
            other => other.to_string(),
        }
    }

    /// Whether another life cycle may work: the server lives, but does not understand this one.
    pub(super) const fn is_misunderstanding(&self) -> bool {
        matches!(
            self,
            Self::Silent(_) | Self::Protocol(_) | Self::Misunderstood(_)
        )
    }

    /// Whether no other attempt can be better.
    pub(super) const fn is_hopeless(&self) -> bool {
        matches!(self, Self::CannotStart(_) | Self::Flood)
    }

    /// How much this says about the problem, if there were several attempts.
    pub(super) const fn tells(&self) -> u8 {
        match self {
            Self::Closed => 0,
            Self::Silent(_) => 1,
            Self::Misunderstood(_) => 2,
            Self::Ended(_) => 3,
            _ => 4,
        }
    }
}
