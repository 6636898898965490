//! The daemon's error: what failed, why, and what the user can do next. `http::respond` turns it into a response.

use agentd_core::begin::Refused;
use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub kind: Kind,
    /// What happened.
    pub what: String,
    pub why: Option<String>,
    /// What to do next.
    pub next: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The request is not valid.
    Invalid,
    NotFound,
    /// A shortened id that several ids begin with; `next` lists them.
    Ambiguous,
    /// The request conflicts with the present state: a taken name, another reset, an old generation.
    Conflict,
    /// Not allowed for this agent or this caller.
    Refused,
    /// The user must make a decision first, which `next` names.
    Waiting,
    /// The request exceeds a limit, which `what` names.
    TooLarge,
    /// The agent has as many queued prompts as it may have.
    QueueFull,
    /// The request did not arrive in time.
    TooSlow,
    /// The path does not support the method.
    WrongMethod,
    /// Not possible now: try again.
    Unavailable,
    /// A fault of the daemon or its disk.
    Internal,
}

impl Error {
    pub fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self {
            kind,
            what: what.into(),
            why: None,
            next: None,
        }
    }

    pub fn because(mut self, why: impl ToString) -> Self {
        self.why = Some(why.to_string());
        self
    }

    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Error {}

impl From<agentd_store::Error> for Error {
    fn from(error: agentd_store::Error) -> Self {
        use agentd_store::Error as Store;
        let kind = match error {
            Store::NoSuchAgent { .. } | Store::NoSuchConversation { .. } => Kind::NotFound,
            Store::NameTaken { .. }
            | Store::AgentExists { .. }
            | Store::OtherOp { .. }
            | Store::GenerationChanged { .. }
            | Store::PurgeCurrent { .. }
            | Store::PurgeNeeded { .. }
            | Store::OriginPurged { .. }
            | Store::TooManyForks { .. } => Kind::Conflict,
            Store::TooLarge { .. } | Store::ExportTooLarge { .. } => Kind::TooLarge,
            Store::ReadOnly { .. } => Kind::Refused,
            Store::BadExport(_)
            | Store::BadName { .. }
            | Store::NameIsId { .. }
            | Store::BadCursor { .. }
            | Store::WrongCursor
            | Store::BadQuery(_)
            | Store::EmptyAppend
            | Store::WithoutWords => Kind::Invalid,
            Store::NotCommitted(_)
            | Store::Uncertain(_)
            | Store::Unavailable(_)
            | Store::NotScrubbed(_)
            | Store::Behind { .. }
            | Store::NoJournal { .. }
            | Store::RepairUnfinished
            | Store::StaleFence { .. }
            | Store::Closed => Kind::Unavailable,
            _ => Kind::Internal,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        let kind = match refused {
            Refused::NoConversation | Refused::NotThere(_) | Refused::NoSuchConversation(_) => {
                Kind::NotFound
            }
            _ => Kind::Conflict,
        };
        let error = Self::new(kind, refused.to_string());
        match refused {
            Refused::OtherOp(_) => error.next("omit --op, or use another op for each change"),
            _ => error,
        }
    }
}
