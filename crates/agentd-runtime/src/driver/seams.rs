//! What the driver needs of others: a journal, tools, somebody who watches.

use agentd_core::draft::Delta;
use agentd_core::event::{Event, NewEvent, TaskExit};
use agentd_core::hook::{HookInvocation, Verdict};
use agentd_core::id::{BootId, ConversationId, TaskId, TryId, TurnId};
use agentd_core::link::Order;
use agentd_core::message::ToolCall;
use agentd_core::recover::CallFact;
use agentd_core::state::{AgentState, StartedCall};
use agentd_core::turn::{Consent, Finished, Prepared};
use agentd_core::window::Window;
use async_trait::async_trait;
use tokio::sync::watch;

/// Where events go. An append that returns is durable.
#[async_trait]
pub trait Journal: Send + 'static {
    /// Commits the events together, ends the draft of that try, and says where the events are. Where
    /// others write this journal too, what they wrote before comes first.
    async fn append(
        &mut self,
        events: Vec<NewEvent>,
        ends: Option<TryId>,
    ) -> Result<Vec<Event>, JournalError>;

    /// Keeps a piece of a reply that is still streaming.
    async fn write_draft(
        &mut self,
        request: TryId,
        offset: u64,
        bytes: Vec<u8>,
    ) -> Result<(), JournalError>;

    /// What others have to say, in the journal's order. Nothing is lost where this is not waited for
    /// to the end. For ever none, where nobody else writes.
    async fn heard(&mut self) -> Result<Heard, JournalError> {
        std::future::pending().await
    }
}

/// What comes from outside by way of the journal.
#[derive(Debug)]
pub enum Heard {
    /// What others have appended.
    Events(Vec<Event>),
    /// Where it is about a turn, that turn alone is meant.
    Order(Order, Option<TurnId>),
}

/// The journal cannot be written: nothing may go on.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Somebody else runs this agent now.
    #[error("another process has taken this agent over: {0}")]
    Superseded(String),
    #[error("the journal cannot be written: {0}")]
    Broken(String),
}

/// What the agent can do.
#[async_trait]
pub trait Tools: Send + Sync + 'static {
    /// The calls from now on are of this turn of this conversation.
    fn in_turn(&self, _conversation: Option<ConversationId>, _turn: TurnId) {}

    /// Whether they run in a sandbox.
    fn is_confined(&self) -> bool {
        true
    }

    /// Checks a call, and finds out what its start must record.
    async fn prepare(&self, call: &ToolCall, consent: Consent) -> Prepared;

    /// Runs it, its start being on record as `started`. When `cancelled` turns true it is to end at
    /// once, and say so.
    async fn run(
        &self,
        call: ToolCall,
        started: StartedCall,
        cancelled: watch::Receiver<bool>,
    ) -> Finished;

    /// Finds out what became of a call that a process before this one started. One that has not begun
    /// never will.
    async fn find(&self, call: &ToolCall, started: &StartedCall) -> CallFact;

    /// Waits for a call that [`Self::find`] said still runs, as [`Self::run`] would.
    async fn resume(
        &self,
        call: ToolCall,
        started: StartedCall,
        cancelled: watch::Receiver<bool>,
    ) -> Finished;

    /// Waits until a background task is over; says how it ended, and what to tell the model.
    async fn task_ended(&self, task: TaskId, boot: BootId) -> (TaskExit, String);
}

/// Who is told of what happens, and may have a say in it.
#[async_trait]
pub trait Hooks: Send + Sync + 'static {
    /// What they have written to the journal has arrived before this returns.
    async fn invoke(&self, invocation: HookInvocation) -> Verdict;
}

/// Something that is on disk by now.
pub enum Observed<'a> {
    Event(&'a Event),
    Delta(TryId, &'a Delta),
    /// The agent with all events folded that were observed so far: after the end of each turn, and when the
    /// driver ends.
    Checkpoint(&'a AgentState, &'a Window),
}

/// Is shown everything once it is durable.
pub type Observer = Box<dyn FnMut(Observed<'_>) + Send>;
