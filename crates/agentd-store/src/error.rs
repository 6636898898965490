//! What can go wrong, each with the next step.

use crate::store::Missing;
use agentd_core::event::DecodeError;
use agentd_core::id::{AgentId, ConversationId, Incarnation, OpId, Seq};
use std::path::PathBuf;
use std::sync::Arc;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no agent {agent}")]
    NoSuchAgent { agent: AgentId },
    #[error("no conversation {conversation} of agent {agent}")]
    NoSuchConversation {
        agent: AgentId,
        conversation: ConversationId,
    },
    #[error(
        "the name `{name}` is taken; choose another (`--as NAME` with import and restore), or rename the agent that has it"
    )]
    NameTaken { name: String },
    #[error(
        "agent {agent} is already there; import it as another agent: `agentd import FILE --as NAME`"
    )]
    AgentExists { agent: AgentId },

    /// Somebody else owns the agent by now.
    #[error("agent {agent} has another owner (fence {held}, now {current}); this one must stop")]
    StaleFence {
        agent: AgentId,
        held: u64,
        current: u64,
    },
    #[error(
        "agent {agent} is run by a newer process (incarnation {sent}, now {current}); \
         this one must stop"
    )]
    StaleIncarnation {
        agent: AgentId,
        sent: Incarnation,
        current: Incarnation,
    },
    #[error("append {sent} of agent {agent} came before append {expected}; send them in order")]
    OutOfOrder {
        agent: AgentId,
        sent: u64,
        expected: u64,
    },
    #[error("agent {agent} has changed (generation {expected}, now {current}); look and try again")]
    GenerationChanged {
        agent: AgentId,
        expected: u64,
        current: u64,
    },

    /// The home is a copy of another one, or seems to be: nothing of it is changed.
    #[error("the state directory is open read-only: {why}")]
    ReadOnly { why: String },

    #[error("{what} of {size} bytes is over the limit of {limit}; make it smaller")]
    TooLarge {
        what: &'static str,
        size: usize,
        limit: usize,
    },
    #[error("an append without events says nothing; leave it out")]
    EmptyAppend,
    #[error("an event whose words were purged cannot be appended")]
    WithoutWords,

    /// The words of a conversation cannot be purged, for the reason given.
    #[error("conversation {conversation} is the current one; reset the agent first")]
    PurgeCurrent { conversation: ConversationId },
    #[error(
        "conversation {conversation} is still needed by {}; purge those first",
        .by.join(", ")
    )]
    PurgeNeeded {
        conversation: ConversationId,
        by: Vec<String>,
    },

    #[error("the words of conversation {conversation} were purged; begin from another one")]
    OriginPurged { conversation: ConversationId },
    /// The journal says that they are gone, and not all of them are yet.
    #[error(
        "the conversation is purged, but some of its words may still be on disk: {0}; they go by \
         themselves then, or purge again to wait for it"
    )]
    NotScrubbed(#[source] Disk),

    /// Nothing of it was committed.
    #[error("not saved: {0}")]
    NotCommitted(#[source] Disk),
    /// It may or may not have been committed; sending it again under the same source is safe.
    #[error("it is not known whether this was saved: {0}; send it again under the same counter")]
    Uncertain(#[source] Disk),
    #[error("cannot read the journal: {0}")]
    Unavailable(#[source] Disk),
    #[error(
        "the journal was written by a newer agentd (schema {found}, this one knows {known}); \
         upgrade agentd, or use another AGENTD_HOME"
    )]
    NewerSchema { found: u32, known: u32 },
    /// The journal ends before its head: a write-ahead log that was deleted or cut, or an older file.
    #[error(
        "the journal ends before events that were acknowledged: {0}; put back the journal.db-wal or \
         journal.db that is missing, or run `agentd verify --repair` to go on without those events"
    )]
    Behind(Missing),
    /// There was a journal, and it is gone: that must not look like a new home.
    #[error(
        "the journal in {} is missing or empty, and {why}; put journal.db back from a backup, or run \
         `agentd verify --repair` to go on with what is left",
        .dir.display()
    )]
    NoJournal { dir: PathBuf, why: String },
    #[error(
        "a repair of the journal was cut off; run `agentd verify --repair` again to complete it"
    )]
    RepairUnfinished,
    #[error("the damaged files cannot be kept aside or replaced: {0}; nothing was deleted")]
    RepairIo(#[source] std::io::Error),
    #[error("event {seq} of agent {agent} cannot be read: {reason}")]
    Damaged {
        agent: AgentId,
        seq: Seq,
        reason: Unreadable,
    },
    #[error("the export cannot be read: {0}")]
    BadExport(String),
    #[error(
        "event {seq} of the export holds a name or label that is not one line of plain characters: {name:?}"
    )]
    BadName { seq: Seq, name: String },
    #[error("the name `{name}` in the export has the form of an id; import it with `--as NAME`")]
    NameIsId { name: String },
    #[error("the export is over a limit: {what} may be at most {limit}")]
    ExportTooLarge { what: &'static str, limit: u64 },
    /// The same op asks for the same change.
    #[error("the op `{op}` was used for another change; use another one")]
    OtherOp { op: Box<OpId> },
    #[error("the export cannot be written or read: {0}")]
    ExportIo(#[source] std::io::Error),
    #[error("the query cannot be understood: {0}; put words with signs in them in quotes")]
    BadQuery(String),
    #[error("this page is of a list in another order; begin again at its first page")]
    WrongCursor,
    #[error("the system gives no random bytes: {0}")]
    NoRandomness(#[source] std::io::Error),
    #[error("the system starts no more threads: {0}; end something else, or raise the limit")]
    NoThread(#[source] std::io::Error),
    #[error("the store has been closed")]
    Closed,
    #[error("an event cannot be written as JSON: {0}")]
    Encode(#[source] serde_json::Error),
}

/// What the disk said, and what to do about it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Disk {
    #[error("the disk is full; free some space, work goes on by itself then")]
    Full,
    #[error("the state directory is read-only; make it writable, work goes on by itself then")]
    ReadOnly,
    #[error("another program holds the journal locked; close it, work goes on by itself then")]
    Locked,
    #[error("the disk failed ({0}); check it, work goes on by itself when it answers again")]
    Io(Arc<rusqlite::Error>),
    #[error(
        "the journal's file cannot be opened ({0}); check the state directory and its permissions"
    )]
    CannotOpen(Arc<rusqlite::Error>),
    #[error("the state directory cannot be made ({0}); check its path and permissions")]
    Dir(Arc<std::io::Error>),
    #[error("the journal cannot be opened again: {0}")]
    Reopen(String),
    #[error(
        "the journal's file is damaged ({0}); `agentd verify` says what is hit, `agentd verify --repair` \
         recovers what is readable"
    )]
    Corrupt(Arc<rusqlite::Error>),
    #[error("the database refused: {0}")]
    Other(Arc<rusqlite::Error>),
}

/// Why a stored event is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("events are missing before it")]
    Gap,
    #[error("a part of it has not the shape that was written")]
    Misshapen,
    #[error("its checksum does not follow from the event before it")]
    BrokenChain,
    #[error("its body does not match its checksum")]
    BodyChanged,
    #[error("a part of it that is kept apart is missing or changed")]
    BlobMissing,
    /// Its owner cannot go on before the file was repaired: nothing can be written near that page.
    #[error("the database page that holds it is damaged; run `agentd verify --repair`")]
    Page,
    #[error("it was acknowledged, and the journal does not have it")]
    Missing,
    #[error(transparent)]
    Undecodable(DecodeError),
}

/// Whether SQLite says that the file is damaged, as opposed to the disk failing.
pub(crate) fn is_corrupt(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode as Code;
    matches!(
        error.sqlite_error_code(),
        Some(Code::DatabaseCorrupt | Code::NotADatabase)
    )
}

impl Disk {
    pub(crate) fn from_sqlite(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        match error.sqlite_error_code() {
            Some(Code::DiskFull) => Self::Full,
            Some(Code::ReadOnly) => Self::ReadOnly,
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => Self::Locked,
            Some(Code::SystemIoFailure) => Self::Io(Arc::new(error)),
            Some(
                Code::CannotOpen | Code::PermissionDenied | Code::AuthorizationForStatementDenied,
            ) => Self::CannotOpen(Arc::new(error)),
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => Self::Corrupt(Arc::new(error)),
            _ => Self::Other(Arc::new(error)),
        }
    }
}

/// Errors of reads. Writes say themselves what became of them.
impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Unavailable(Disk::from_sqlite(error))
    }
}
