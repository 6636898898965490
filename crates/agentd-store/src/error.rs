//! The store's errors. Each says what failed and what to do next.

use crate::damage::{Damage, Missing, Unreadable};
use agentd_core::id::{AgentId, ConversationId, Incarnation, OpId, Seq};
use std::sync::Arc;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no agent {agent}")]
    NoSuchAgent { agent: AgentId },
    /// The agent of a stored event is damaged.
    #[error(
        "the event at position {position} of the journal belongs to no agent; `agentd verify` shows what is damaged"
    )]
    NoAgent { position: i64 },
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
        "agent {agent} already exists; to import it as another agent, add `--as NAME` to the same command"
    )]
    AgentExists { agent: AgentId },

    /// Another owner has claimed the agent.
    #[error(
        "stale fence for agent {agent} (epoch {held}, now {current}): it has another owner; this one must stop"
    )]
    StaleFence {
        agent: AgentId,
        held: u64,
        current: u64,
    },
    #[error(
        "stale incarnation for agent {agent} ({sent}, now {current}): a newer process runs it; \
         this one must stop"
    )]
    StaleIncarnation {
        agent: AgentId,
        sent: Incarnation,
        current: Incarnation,
    },
    #[error("append {sent} of agent {agent} arrived before append {expected}; send them in order")]
    OutOfOrder {
        agent: AgentId,
        sent: u64,
        expected: u64,
    },
    #[error(
        "agent {agent} has changed (expected generation {expected}, found {current}); reload and try again"
    )]
    GenerationChanged {
        agent: AgentId,
        expected: u64,
        current: u64,
    },

    /// The home is a copy of another home, or may be one: the store refuses every change.
    #[error("the state directory is open read-only: {why}")]
    ReadOnly { why: String },

    #[error("{what} of {size} {unit} exceeds the limit of {limit}; make it smaller")]
    TooLarge {
        what: &'static str,
        size: usize,
        unit: &'static str,
        limit: usize,
    },
    #[error(
        "the conversation reaches through more than {limit} forks; begin another one with `agentd reset`"
    )]
    TooManyForks { limit: usize },
    #[error("an append must contain at least one event")]
    EmptyAppend,
    #[error("an event whose text was purged cannot be appended")]
    WithoutWords,

    /// The text of the current conversation cannot be purged.
    #[error("conversation {conversation} is the current one; reset the agent first")]
    PurgeCurrent { conversation: ConversationId },
    #[error(
        "conversation {conversation} is still needed by {}; purge these first",
        .by.join(", ")
    )]
    PurgeNeeded {
        conversation: ConversationId,
        by: Vec<String>,
    },

    #[error("the text of conversation {conversation} was purged; branch from another one")]
    OriginPurged { conversation: ConversationId },
    /// The purge is in the journal, but some of the text may still be in the files.
    #[error(
        "the conversation is purged, but some of its text may still be on disk: {0}; the deletion continues \
         automatically, and a second purge waits for it"
    )]
    NotScrubbed(#[source] Disk),

    /// Nothing of it was committed.
    #[error("not saved: {0}")]
    NotCommitted(#[source] Disk),
    /// The outcome is unknown. Sending the append again under the same source is safe.
    #[error("it is unknown whether this was saved: {0}; send it again with the same counter")]
    Uncertain(#[source] Disk),
    #[error("cannot read the journal: {0}")]
    Unavailable(#[source] Disk),
    #[error(
        "the journal was written by a newer agentd (schema {found}, this one supports {known}); \
         upgrade agentd, or use another AGENTD_HOME"
    )]
    NewerSchema { found: u32, known: u32 },
    /// The journal ends before its head: a part of it was deleted or truncated, or replaced by an older one.
    #[error(
        "the journal ends before events that were acknowledged: {missing}; restore {restore}, or run \
         `agentd verify --repair` to continue without those events"
    )]
    Behind {
        missing: Missing,
        /// What the user has to put back, in the words of the backend.
        restore: &'static str,
    },
    /// A journal existed and is gone. The store must not create an empty one in its place.
    #[error(
        "the journal in {location} is missing or empty, and {why}; restore {restore} from a backup, or run \
         `agentd verify --repair` to continue with what is left"
    )]
    NoJournal {
        /// Where the backend keeps the journal, as the user knows it.
        location: String,
        why: String,
        /// What the user has to put back, in the words of the backend.
        restore: &'static str,
    },
    #[error(
        "a repair of the journal was interrupted; run `agentd verify --repair` again to complete it"
    )]
    RepairUnfinished,
    #[error("the damaged files cannot be moved aside or replaced: {0}; nothing was deleted")]
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
        "event {seq} of the export has a name or label that is not one line of plain characters: {name:?}"
    )]
    BadName { seq: Seq, name: String },
    #[error("the name `{name}` in the export has the form of an id; import it with `--as NAME`")]
    NameIsId { name: String },
    #[error("the export exceeds a limit: {what} may be at most {limit}")]
    ExportTooLarge { what: &'static str, limit: u64 },
    /// An op identifies one change; this one came with a different change.
    #[error("the op `{op}` was already used for another change; use a new op")]
    OtherOp { op: Box<OpId> },
    #[error("the export cannot be written or read: {0}")]
    ExportIo(#[source] std::io::Error),
    #[error("the backup cannot be read: {0}")]
    BadBackup(String),
    #[error("the backup cannot be written: {0}")]
    BackupIo(#[source] std::io::Error),
    /// The journal does not continue the one that the earlier backup was made of.
    #[error(
        "the journal was repaired, migrated or replaced since the earlier backup; make a backup that is not incremental"
    )]
    OtherJournal,
    #[error("the query cannot be parsed: {0}; put words with special characters in quotes")]
    BadQuery(String),
    #[error("this page belongs to a list in another order; start again at the first page")]
    WrongCursor,
    /// The text is not a cursor that this store has handed out.
    #[error("{cursor:?} is not a cursor of this store; start again without one")]
    BadCursor { cursor: String },
    #[error("the system returned no random bytes: {0}")]
    NoRandomness(#[source] std::io::Error),
    #[error("the system cannot start another thread: {0}; end other processes or raise the limit")]
    NoThread(#[source] std::io::Error),
    #[error("the store has been closed")]
    Closed,
    #[error("an event cannot be written as JSON: {0}")]
    Encode(#[source] serde_json::Error),
}

impl Error {
    /// The error that a read reports when it meets this damage.
    pub(crate) fn of_damage(agent: AgentId, damage: &Damage) -> Self {
        Self::Damaged {
            agent,
            seq: damage.from,
            reason: damage.reason.clone(),
        }
    }
}

/// What the backend itself reported.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// What failed on disk, and what to do about it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Disk {
    #[error("the disk is full; free some space, and agentd continues automatically")]
    Full,
    #[error(
        "the state directory is read-only; make it writable, and agentd continues automatically"
    )]
    ReadOnly,
    #[error("another program has locked the journal; close it, and agentd continues automatically")]
    Locked,
    #[error("the disk failed ({0}); check it; agentd continues when the disk works again")]
    Io(Cause),
    #[error(
        "the journal's file cannot be opened ({0}); check the state directory and its permissions"
    )]
    CannotOpen(Cause),
    #[error("the state directory cannot be created ({0}); check its path and permissions")]
    Dir(Cause),
    #[error("the journal cannot be reopened: {0}")]
    Reopen(String),
    #[error(
        "the journal's file is damaged ({0}); `agentd verify` lists the damage, `agentd verify --repair` \
         recovers what is readable"
    )]
    Corrupt(Cause),
    #[error("the database returned an error: {0}")]
    Other(Cause),
}
