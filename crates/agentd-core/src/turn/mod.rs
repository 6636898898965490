//! The turn machine: what to do next, as data.
//!
//! [`Machine::step`] takes one input (a committed event, a reply, a result, …) and returns effects. The driver
//! carries them out in order and feeds the results back. The machine's own appends come back to it as
//! [`Input::Event`], in the order of the journal, so everything it acts on is durable. At most one append is in
//! progress at a time; what accumulates in the meantime goes into the next one.
//!
//! - `absorb`: how each input changes the machine.
//! - `plan`: what to do next. It looks at the folds and at what is in progress (`Live`), never at how the machine got
//!   there. A new machine that is built from the journal after a crash and [`crate::recover`] therefore continues
//!   where the old one was.

mod absorb;
mod answer;
mod asking;
mod backoff;
mod commands;
mod deadline;
mod ending;
mod environment;
mod hooks;
mod instructions;
mod live;
mod mcp;
mod outer;
mod plan;
mod plan_reminder;
mod request_over;
mod scan;
mod tools;

#[cfg(test)]
mod tests;

pub use crate::finished::Finished;
pub use backoff::backoff_ms;
pub use deadline::Deadline;

use live::{Backoff, Built, InTurn, Live, LiveCall};

use crate::draft::Reply;
use crate::environment::Lacking;
use crate::event::{
    Context, Event, FailureClass, FileKept, LimitKind, NewEvent, Scan, StopReason, TaskExit,
    ToolStarted,
};
use crate::hook::{HookInvocation, Verdict};
use crate::id::{ApprovalId, CallId, ConversationId, InvocationId, Seq, TaskId, TryId, TurnId};
use crate::link::Order;
use crate::mcp::{Known, Question, QuestionReply, Seen};
use crate::message::{Block, CallOutcome, ToolCall};
use crate::request::Request;
use crate::state::{AgentState, ScanSince, StartedCall};
use crate::system_prompt::{Present, ToldFiles};
use crate::time::Timestamp;
use crate::usage::{MicroUsd, Price, Usage};
use crate::window::Window;
use std::collections::BTreeSet;
use uuid::Uuid;

/// What the machine must know from the driver.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What requests contain besides their messages. Recorded in the journal when it changes.
    pub context: Context,
    /// The model's window in tokens, if it is known.
    pub model_window: Option<u64>,
    pub price: Option<Price>,
    /// The tools that may run in parallel.
    pub parallel: BTreeSet<String>,
    /// The turn fails after this many failed attempts in a row.
    pub max_failures: u32,
    /// Set if the model's key is missing: the text for the user about it.
    pub missing_key: Option<String>,
    /// The MCP servers whose tools the agent has.
    pub mcp: Vec<Known>,
    /// What tools should have by the settings and lack.
    pub lacking: Lacking,
    pub hooks: Hooks,
}

/// Whether hooks run for this agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hooks {
    #[default]
    None,
    Asked,
}

/// The current time, and a source of new ids. This crate has neither.
pub struct Moment<'a> {
    pub at: Timestamp,
    pub new_id: &'a mut dyn FnMut() -> Uuid,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// An event was committed to this agent's journal, by any process. All events of one append are fed in before any
    /// of their effects is carried out.
    Event(Event),
    /// The append is committed. All its events have been fed in before this.
    Appended,
    /// The model's reply is complete.
    Replied {
        request: TryId,
        reply: Reply,
        stop: StopReason,
        usage: Option<Usage>,
        provider_request: Option<String>,
    },
    RequestFailed {
        request: TryId,
        class: FailureClass,
        status: Option<u16>,
        retry_after_ms: Option<u64>,
        /// For users.
        detail: String,
        partial: Reply,
    },
    /// The request was cancelled, as [`Effect::CancelRequest`] asked.
    RequestCancelled {
        request: TryId,
        partial: Reply,
    },
    /// The result of [`Effect::PrepareTool`].
    Prepared {
        call: CallId,
        prepared: Prepared,
    },
    ToolFinished {
        call: CallId,
        finished: Finished,
    },
    /// A call that runs has a question for the user. The driver has chosen the id, which identifies the reply.
    ToolAsks {
        approval: ApprovalId,
        call: CallId,
        question: Question,
    },
    /// A call that runs does not want to know any more what it asked.
    ToolWithdraws {
        approval: ApprovalId,
    },
    /// A background task has ended. The model is told at the next boundary.
    TaskEnded {
        task: TaskId,
        exit: TaskExit,
        /// What the model is told.
        text: String,
    },
    /// The result of [`Effect::ReadInstructions`].
    InstructionsRead(Option<Present>),
    /// The result of [`Effect::ListMcp`].
    McpSeen {
        look: u64,
        seen: Vec<Seen>,
    },
    /// The result of [`Effect::ScanFiles`].
    FilesScanned {
        turn: TurnId,
        found: Scan,
    },
    /// The wait of [`Effect::Backoff`] is over.
    BackoffOver,
    /// The program of an outer agent reported what its turn has used. Comes before the end of the request.
    Spent {
        usage: Usage,
        cost: Option<MicroUsd>,
    },
    /// The program of an outer agent has ended, and its turn was waiting for the user.
    ChildGone(String),
    /// The program of an outer agent ended its turn because of a limit of its own. Comes before the end of the request.
    ChildLimited(LimitKind),
    /// The verdict of the hooks for [`Effect::InvokeHooks`].
    HooksAnswered {
        id: InvocationId,
        verdict: Verdict,
    },
    /// A hook of a call requests that the turn end now, for this reason.
    Halt(String),
    /// A time limit of the turn has been reached, as announced by [`Machine::deadline`].
    TimeUp {
        turn: TurnId,
        limit: LimitKind,
    },
    /// The user interrupts the turn.
    Interrupt,
    /// The user interrupts this turn. If it has already ended, nothing is interrupted.
    InterruptTurn(TurnId),
    /// Continue the turn that ended as `limited`, or the one that is paused.
    Continue,
    /// Begin no turn before [`Input::BeginTurns`]. A turn that has begun continues.
    HoldTurns,
    BeginTurns,
    /// Finish what is in progress and start nothing new. The turn continues in another process, unless it happens to
    /// end.
    Stop,
    /// The same, but without waiting for the model's reply. The part that has arrived is kept, and the next process
    /// sends the request again.
    Leave,
}

/// Whether a call may start.
#[derive(Clone, Debug, PartialEq)]
pub enum Prepared {
    /// It may, as soon as this is durable, together with what the files were that it changes.
    Run(ToolStarted, Vec<FileKept>),
    /// The user must approve it, for this reason.
    Ask(String),
    /// It may not, or cannot, start.
    Refuse {
        outcome: CallOutcome,
        blocks: Vec<Block>,
    },
}

/// Whether the user has approved a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    NotAsked,
    Given,
    /// A hook of the user has approved it, in place of the user.
    OfHook,
}

/// An action for the driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Commit these together, then feed them back, then [`Input::Appended`].
    Append {
        events: Vec<NewEvent>,
        /// The draft that these events end.
        ends: Option<TryId>,
    },
    Send {
        request_id: TryId,
        request: Box<Request>,
    },
    CancelRequest {
        request: TryId,
    },
    /// Check the permission and the arguments, and determine what its start must record.
    PrepareTool {
        call: ToolCall,
        consent: Consent,
    },
    RunTool {
        call: ToolCall,
        /// As recorded at its start.
        started: StartedCall,
    },
    CancelTool {
        call: CallId,
    },
    /// Run the hooks and wait for their verdict. If another process repeats the invocation, it gets the same verdict.
    InvokeHooks {
        invocation: Box<HookInvocation>,
    },
    /// Read the instruction files that apply now. `told` are the paths of those that the model knows.
    ReadInstructions {
        told: ToldFiles,
    },
    /// The user's reply to the question of a call that runs.
    AnswerTool {
        approval: ApprovalId,
        call: CallId,
        reply: QuestionReply,
    },
    /// Look at what the MCP servers offer. The lists of the servers `unknown` are in no event, so they are worth a short
    /// wait.
    ListMcp {
        /// Identifies the result. One of an earlier turn may arrive during a later one.
        look: u64,
        unknown: Vec<String>,
    },
    /// Find which files changed since then. The turn that ran commands, or during which background commands ran, has
    /// ended.
    ScanFiles {
        turn: TurnId,
        since: ScanSince,
    },
    /// Wait (longer with each failure, with jitter) before the next attempt.
    Backoff {
        failures: u32,
        at_least_ms: Option<u64>,
    },
    /// The agent has another current conversation, so this machine is done. The next machine needs a new incarnation,
    /// because it counts its requests from 1.
    Reload {
        conversation: ConversationId,
        through: Seq,
    },
    /// Nothing is in progress after [`Input::Stop`], so this machine is done.
    Stopped,
}

impl Input {
    /// The input for an order of the daemon.
    pub const fn of_order(order: Order, turn: Option<TurnId>) -> Self {
        match (order, turn) {
            (Order::Interrupt, Some(turn)) => Self::InterruptTurn(turn),
            (Order::Interrupt, None) => Self::Interrupt,
            (Order::Continue, _) => Self::Continue,
            (Order::Stop, _) => Self::Stop,
            (Order::Leave, _) => Self::Leave,
            (Order::BeginTurns, _) => Self::BeginTurns,
        }
    }
}

/// The machine of one awake agent.
#[derive(Clone, Debug)]
pub struct Machine {
    agent: AgentState,
    window: Window,
    policy: Policy,
    live: Live,
}

impl Machine {
    /// A machine for a journal that was recovered. `running` are the calls whose processes are still running.
    pub fn new(
        agent: AgentState,
        window: Window,
        policy: Policy,
        running: impl IntoIterator<Item = CallId>,
    ) -> Self {
        let calls = running.into_iter().map(|id| (id, LiveCall::Running));
        let last_failure = agent.turn.as_ref().and_then(|turn| turn.last_failure);
        let turn = InTurn {
            interrupting: agent.turn.is_some() && agent.ends_turn(),
            overflowed: last_failure == Some(FailureClass::ContextOverflow),
            shortened: hooks::Shortened::untold(&agent, &window),
            ..InTurn::default()
        };
        let live = Live {
            calls: calls.collect(),
            turn,
            ..Live::default()
        };
        Self {
            agent,
            window,
            policy,
            live,
        }
    }

    pub const fn agent(&self) -> &AgentState {
        &self.agent
    }

    pub const fn window(&self) -> &Window {
        &self.window
    }

    /// The first effects after a start, when there is no input yet.
    pub fn start(&mut self, moment: &mut Moment<'_>) -> Vec<Effect> {
        self.plan(moment)
    }

    pub fn step(&mut self, moment: &mut Moment<'_>, input: Input) -> Vec<Effect> {
        self.absorb(input);
        self.plan(moment)
    }
}
