//! The traits that the driver depends on: a journal, tools, hooks and an observer.

use agentd_core::draft::Delta;
use agentd_core::event::{Body, Event, NewEvent, Scan, ScanProblem, TaskExit};
use agentd_core::hook::{HookInvocation, Verdict};
use agentd_core::id::{ApprovalId, BootId, CallId, ConversationId, TaskId, TryId, TurnId};
use agentd_core::link::Order;
use agentd_core::mcp::{CallProgress, Question, QuestionReply, Seen};
use agentd_core::message::ToolCall;
use agentd_core::recover::CallFact;
use agentd_core::state::{AgentState, ScanSince, StartedCall};
use agentd_core::system_prompt::{Present, ToldFiles};
use agentd_core::turn::{Consent, Finished, Prepared};
use agentd_core::window::{SeenFiles, Window};
use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot, watch};

/// Where events go. An append that returns is durable.
#[async_trait]
pub trait Journal: Send + 'static {
    /// Commits the events together, ends the draft of that attempt, and returns the events with their positions. If
    /// other processes write this journal too, their earlier events come first.
    async fn append(
        &mut self,
        events: Vec<NewEvent>,
        ends: Option<TryId>,
    ) -> Result<Vec<Event>, JournalError>;

    /// Stores a piece of a reply that is still streaming.
    async fn write_draft(
        &mut self,
        request: TryId,
        offset: u64,
        bytes: Vec<u8>,
    ) -> Result<(), JournalError>;

    /// Shows the progress of a call to the clients that watch. It is not kept, and may be lost.
    fn show(&mut self, _progress: CallProgress) {}

    /// Events and orders from outside, in the journal's order. Cancel-safe: dropping the future loses nothing. Never
    /// returns if there is no other writer.
    async fn heard(&mut self) -> Result<Heard, JournalError> {
        std::future::pending().await
    }
}

/// What arrives from outside through the journal.
#[derive(Debug)]
pub enum Heard {
    /// Events that other processes have appended.
    Events(Vec<Event>),
    /// An order; with a turn, it applies to that turn only.
    Order(Order, Option<TurnId>),
}

/// The journal cannot be written, so the driver must not continue.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process runs this agent now.
    #[error("another process has taken over this agent: {0}")]
    Superseded(String),
    #[error("cannot write the journal: {0}")]
    Broken(String),
    /// The reply that is streaming cannot be kept; everything else can be written.
    #[error("the reply cannot be kept: {0}")]
    DraftRefused(String),
}

/// What a running call has to say before its result.
#[derive(Debug)]
pub enum ToolNews {
    Asks(ToolQuestion),
    /// It does not want to know any more what it asked with this id.
    Withdraws(ApprovalId),
    Progress(CallProgress),
}

/// A question of a running call to the user. Without a reply, it is declined.
#[derive(Debug)]
pub struct ToolQuestion {
    /// Identifies the question and its reply.
    pub approval: ApprovalId,
    pub call: CallId,
    pub question: Question,
    pub reply: oneshot::Sender<QuestionReply>,
}

/// The tools of the agent.
#[async_trait]
pub trait Tools: Send + Sync + 'static {
    /// Sets the turn and the conversation of the calls that follow.
    fn in_turn(&self, _conversation: Option<ConversationId>, _turn: TurnId) {}

    /// Called when the process begins, and again if recovery added to it: the conversation so far. Tools can show how a file has changed since the
    /// model read it.
    fn recall(&self, _window: &Window) {}

    /// Called when the process begins in the middle of a turn that has run commands: what was there before them is not known.
    fn resumes_commands(&self) {}

    /// Called with each event of the journal that follows, when it is durable.
    fn recorded(&self, _body: &Body) {}

    /// Called after the events that [`Self::recorded`] had are folded into the agent: removes what its ended tasks have left.
    fn tidy(&self, _agent: &AgentState) {}

    /// Whether the tools run in a sandbox.
    fn is_confined(&self) -> bool {
        true
    }

    /// Whether this call waits for a decision, so that a refusal keeps it from running. The hooks that decide about a call
    /// are invoked only then.
    fn awaits_decision(&self, _call: &ToolCall) -> bool {
        true
    }

    /// Whether calls can run with other arguments than those that the model gave.
    fn takes_other_input(&self) -> bool {
        true
    }

    /// Whether a call that needs the user's approval is refused (`approval: never`).
    fn never_asks(&self) -> bool {
        false
    }

    /// Checks a call, and determines what its start must record. `seen` has the files whose content the model knows.
    async fn prepare(&self, call: &ToolCall, consent: Consent, seen: &SeenFiles) -> Prepared;

    /// Runs a call whose start is recorded as `started`. When `cancelled` becomes true the call must end at once and
    /// report that it was interrupted.
    async fn run(
        &self,
        call: ToolCall,
        started: StartedCall,
        cancelled: watch::Receiver<bool>,
    ) -> Finished;

    /// Determines the outcome of a call that an earlier process started. A call that has not started is prevented from
    /// starting.
    async fn find(&self, call: &ToolCall, started: &StartedCall) -> CallFact;

    /// Waits for a call that [`Self::find`] reported as running, as [`Self::run`] would.
    async fn resume(
        &self,
        call: ToolCall,
        started: StartedCall,
        cancelled: watch::Receiver<bool>,
    ) -> Finished;

    /// The instruction files that apply to the agent's work now, with those of the directories that its calls have
    /// touched, and which skills may not be used. `told` has the files that the model knows. None if they cannot be read.
    async fn instructions(&self, _told: ToldFiles) -> Option<Present> {
        None
    }

    /// The questions of calls to the user, and their progress, once.
    fn news(&self) -> Option<mpsc::UnboundedReceiver<ToolNews>> {
        None
    }

    /// What the MCP servers offer, of those in `unknown` and of those that have something new.
    async fn list_mcp(&self, _unknown: Vec<String>) -> Vec<Seen> {
        Vec::new()
    }

    /// Finds the files that changed since then, except those that these tools changed themselves.
    async fn scan(&self, _since: ScanSince) -> Scan {
        let why = ScanProblem::NoGit;
        Scan::Unknown { why }
    }

    /// Waits until a background task has ended; returns how it ended and the text for the model.
    async fn task_ended(&self, task: TaskId, boot: BootId) -> (TaskExit, String);

    /// Ends the programs that the tools use. Called once, when the driver has ended.
    async fn close(&self) {}
}

/// Runs hooks, which are informed of events and may block them.
#[async_trait]
pub trait Hooks: Send + Sync + 'static {
    /// Events that the hooks caused in the journal have arrived before this returns.
    async fn invoke(&self, invocation: HookInvocation) -> Verdict;
}

/// What the observer gets: everything in it is on disk.
pub enum Observed<'a> {
    Event(&'a Event),
    Delta(TryId, &'a Delta),
    /// The agent with all events folded that were observed so far: after the end of each turn, and when the
    /// driver ends.
    Checkpoint(&'a AgentState, &'a Window),
}

/// Called with everything that happens, once it is durable.
pub type Observer = Box<dyn FnMut(Observed<'_>) + Send>;
