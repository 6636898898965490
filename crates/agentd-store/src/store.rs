//! The interface of every store, and its types.

mod cursor;
mod list;
mod read;
mod spending;

pub use cursor::{AgentCursor, Cursor};
pub use list::{AgentPage, AgentQuery, AgentRow, AgentSort};
pub use read::{GlobalPage, Page, ReadQuery, Texts, TurnQuery, Turns};
pub use spending::{SpendingQuery, SpendingRow};

use crate::backup::{BackedUp, BackupMark, BackupSink};
use crate::damage::{Damage, Report};
use crate::error::Result;
use crate::export::File as ImportFile;
use agentd_core::event::{Event, NewEvent, Operation};
use agentd_core::id::{AgentId, ConversationId, Incarnation, Seq, TryId, TurnId};
use agentd_core::state::{AgentState, Conversation};
use agentd_core::time::Timestamp;
use agentd_core::usage::Spent;
use agentd_core::window::Window;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::ops::RangeInclusive;
use tokio::sync::watch;

/// The journals of all agents.
///
/// Dropping a future does not reliably cancel its operation: the store may still carry it out.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Makes `owner` the only writer of this agent; the store refuses writes of the previous owner. A damaged tail is
    /// moved to quarantine, so that the journal can continue.
    async fn claim(&self, agent: AgentId, owner: &str) -> Result<Claim>;

    /// Commits events to one agent's journal, all or none. When this returns they are durable.
    async fn append(&self, append: Append) -> Result<Ack>;

    /// Stores a piece of a reply that is still streaming.
    async fn write_draft(&self, fence: Fence, chunk: DraftChunk) -> Result<DraftAck>;

    /// The stored part of the reply that has not ended.
    async fn draft(&self, agent: AgentId) -> Result<Option<Draft>>;

    /// The agent and the window of its current conversation: a snapshot and the tail after it.
    async fn load(&self, agent: AgentId) -> Result<Loaded>;

    /// What the model saw of a conversation up to some event.
    async fn window(
        &self,
        agent: AgentId,
        conversation: ConversationId,
        through: Seq,
    ) -> Result<Window>;

    /// A page of one agent's events.
    async fn read(&self, query: ReadQuery) -> Result<Page>;

    /// The `turn_ended` events of a conversation, oldest first.
    async fn turn_ends(&self, query: TurnQuery) -> Result<Vec<Event>>;

    /// The number of `turn_ended` events of a conversation up to some event.
    async fn count_turn_ends(
        &self,
        agent: AgentId,
        conversation: ConversationId,
        through: Seq,
    ) -> Result<usize>;

    /// At most `limit` ended turns of an agent whose ids lie in a range, in order.
    async fn turns_between(
        &self,
        agent: AgentId,
        ids: RangeInclusive<TurnId>,
        limit: usize,
    ) -> Result<Vec<TurnId>>;

    /// A page of all agents' events, in the order they were committed.
    async fn read_all(&self, after: Cursor, limit: usize) -> Result<GlobalPage>;

    /// The position after the last commit. Longer reads, such as exports, do not keep it waiting.
    async fn end(&self) -> Result<Cursor>;

    /// Follows one agent's journal from `after` on. Woken by commits; it never polls.
    fn tail(&self, agent: AgentId, after: Seq) -> Tail;

    /// Notifies of the commits of all agents.
    fn commits(&self) -> Commits;

    /// The agent with this name or alias.
    async fn find(&self, name: &str) -> Result<Option<AgentId>>;

    /// At most `limit` agents, archived or not, whose ids lie in a range, in order.
    async fn agents_between(
        &self,
        ids: RangeInclusive<AgentId>,
        limit: usize,
    ) -> Result<Vec<AgentId>>;

    /// A page of the list of agents.
    async fn agents(&self, query: AgentQuery) -> Result<AgentPage>;

    /// The agents that have background tasks, according to their journals.
    async fn with_tasks(&self) -> Result<Vec<AgentId>>;

    /// The agents with a pending idle reset, and when it is due; the earliest first.
    async fn idle_resets(&self, limit: usize) -> Result<Vec<(AgentId, Timestamp)>>;

    /// The agents with a schedule that is or will be due, and when; the earliest first.
    async fn due_schedules(&self, limit: usize) -> Result<Vec<(AgentId, Timestamp)>>;

    /// The agents that have schedules, archived ones too.
    async fn with_schedules(&self) -> Result<Vec<AgentId>>;

    async fn conversations(&self, agent: AgentId) -> Result<Vec<Conversation>>;

    /// Events that contain the text, newest first. The index follows the journal with a short delay.
    async fn search(&self, query: SearchQuery) -> Result<SearchPage>;

    /// What agents have spent.
    async fn usage(&self, agent: Option<AgentId>) -> Result<Spent>;

    /// What agents have spent by conversation, model and day.
    async fn spending(&self, query: SpendingQuery) -> Result<Vec<SpendingRow>>;

    /// Writes an agent, and the prefixes of other agents that its branches need, to one export file.
    async fn export(&self, agent: AgentId, out: Box<dyn Write + Send>) -> Result<Exported>;

    /// Whether the agent itself is stored here, archived or not. False for an ancestor that came with an import.
    async fn is_listed(&self, agent: AgentId) -> Result<bool>;

    /// Reads an export file, all of it or nothing. The agent is then held; see [`agentd_core::state::Held`].
    /// The file is read twice and is never in memory as a whole.
    async fn import(&self, input: Box<dyn ImportFile>, order: Import) -> Result<Imported>;

    /// Writes the journal as it is at one moment, with every event that was acknowledged before. With `since`, only what an
    /// earlier backup of the same journal does not have. Appends continue meanwhile.
    async fn back_up(
        &self,
        out: Box<dyn BackupSink>,
        since: Option<BackupMark>,
    ) -> Result<BackedUp>;

    /// The conversations whose content was purged, oldest purge first. A backup that was made before may still have it.
    async fn purged_conversations(&self) -> Result<Vec<(AgentId, ConversationId)>>;

    /// What a purge of all these conversations would delete. An error if one of them may not be purged.
    async fn would_purge(
        &self,
        agent: AgentId,
        conversations: Vec<ConversationId>,
    ) -> Result<Deletion>;

    /// Deletes the text of a conversation permanently.
    async fn purge(
        &self,
        fence: Fence,
        conversation: ConversationId,
        at: Timestamp,
    ) -> Result<Purge>;

    /// Deletes the bodies of the oldest `file_kept` events, until no more is left than what is to be kept. Returns the
    /// `purged` event of the same commit; `None` if nothing had to be deleted.
    async fn purge_files(
        &self,
        fence: Fence,
        keep: KeepFiles,
        at: Timestamp,
    ) -> Result<Option<Event>>;

    /// Checks one agent's journal, or everything.
    async fn verify(&self, agent: Option<AgentId>) -> Result<Report>;

    /// To be called in idle times: merges pending data into the main files, so that the next start has less to read.
    /// Does nothing while a reader prevents it.
    async fn checkpoint(&self) -> Result<()>;

    /// Waits until everything derived (snapshots, search) has caught up with the journal.
    async fn wait_caught_up(&self) -> Result<()>;
}

/// What is kept of the history of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepFiles {
    /// At most so many bytes are left.
    pub bytes: u64,
    /// The newest content stays also if it has more bytes than that, but not if it has more than these.
    pub largest: u64,
}

/// The right to write one agent. A newer one makes it stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    pub agent: AgentId,
    pub epoch: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    pub fence: Fence,
    /// The tail that was moved to quarantine, if it was damaged.
    pub quarantined: Option<Damage>,
}

/// The sender's own counter: an append that is sent again is applied once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    pub incarnation: Incarnation,
    /// 1, 2, 3… within the incarnation.
    pub n: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Append {
    pub fence: Fence,
    pub source: Option<Source>,
    pub events: Vec<NewEvent>,
    /// If set, the append is refused unless this is the agent's current generation.
    pub expected_generation: Option<u64>,
    /// The try that these events end. Its draft is deleted in the same commit.
    pub ends: Option<TryId>,
}

impl Append {
    pub fn new(fence: Fence, events: Vec<NewEvent>) -> Self {
        Self {
            fence,
            source: None,
            events,
            expected_generation: None,
            ends: None,
        }
    }
}

/// The events of the append have been committed, now or before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    Committed {
        first: Seq,
        last: Seq,
    },
    /// The append was committed before. The position is known only for the newest append.
    Repeated {
        place: Option<(Seq, Seq)>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftChunk {
    pub request: TryId,
    /// Bytes of this try that were sent before.
    pub offset: u64,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftAck {
    Kept,
    /// The try has ended, or the offset is not where the draft stops.
    Dropped,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub request: TryId,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    pub state: AgentState,
    pub window: Window,
    /// The newest append that had a counter.
    pub source: Option<Source>,
    /// The journal after this point is damaged; everything before it was loaded.
    pub damage: Option<Damage>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    pub text: String,
    pub agent: Option<AgentId>,
    pub limit: usize,
    /// From [`SearchPage::next`].
    pub before: Option<Cursor>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SearchPage {
    pub hits: Vec<(Cursor, Event)>,
    pub next: Option<Cursor>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exported {
    pub events: u64,
    /// Prefixes of other agents that branches need.
    pub ancestors: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imported {
    pub agent: AgentId,
    pub events: u64,
    /// The agent that had the imported agent's name as an alias, and loses it.
    pub displaced: Option<AgentId>,
}

/// What is appended to an imported journal, in the commit that imports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The time of the appended events.
    pub at: Timestamp,
    /// The change that was requested under an op. If the agent already has it on record, the import was done before.
    pub operation: Option<Operation>,
    /// Another name, and another id if the agent already exists here.
    pub under: Option<ImportAs>,
}

impl Import {
    /// Under the agent's own name.
    pub const fn at(at: Timestamp) -> Self {
        Self {
            at,
            operation: None,
            under: None,
        }
    }
}

/// The name, and if necessary the id, that an imported agent gets here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportAs {
    pub name: String,
    /// Used if the id in the file is taken.
    pub id: AgentId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purge {
    /// Events whose bodies were deleted.
    pub events: u64,
    pub blobs: u64,
    /// Where the `purged` event is.
    pub seq: Seq,
}

/// What a purge deletes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deletion {
    /// Events whose bodies are deleted.
    pub events: u64,
    /// Long texts that no other event uses.
    pub blobs: u64,
}

/// Notifies of commits. Several commits may be one notification.
pub struct Commits(pub(crate) watch::Receiver<u64>);

impl Commits {
    /// Waits for the next commit; false if the store has closed.
    pub async fn next(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// Follows one agent's journal.
pub struct Tail {
    pub(crate) next: Box<dyn TailSource>,
}

impl Tail {
    /// The next events, in order. Waits until there are some.
    pub async fn next(&mut self) -> Result<Vec<Event>> {
        self.next.next().await
    }
}

#[async_trait]
pub(crate) trait TailSource: Send {
    async fn next(&mut self) -> Result<Vec<Event>>;
}
