//! The turn machine: what should be done next, as data.
//!
//! [`Machine::step`] takes one input (a committed event, a reply, a result, …) and returns effects;
//! the driver carries them out in order and feeds back what came of them. The machine's own appends
//! come back to it as [`Input::Event`], in the journal's order, so everything it acts on is durable.
//! At most one append is under way at a time; what piles up meanwhile goes into the next one.
//!
//! - `absorb`: what each input changes.
//! - `plan`: what the state then calls for. It looks at the folds and at what is in the machine's
//!   hands (`Live`), never at how it got there; a machine that is built anew from the journal after
//!   a crash and [`crate::recover`] therefore goes on where the old one was.

mod absorb;
mod answer;
mod deadline;
mod ending;
mod hooks;
mod plan;
mod tools;

#[cfg(test)]
mod tests;

pub use deadline::Deadline;

use crate::draft::Reply;
use crate::event::{
    Body, Context, Event, FailureClass, LimitKind, NewEvent, Position, StopReason, TaskExit,
    TaskStarted, ToolStarted,
};
use crate::hook::{HookInvocation, Verdict};
use crate::id::{CallId, ConversationId, InvocationId, Seq, TaskId, TryId, TurnId};
use crate::link::Order;
use crate::message::{Block, CallOutcome, ToolCall};
use crate::request::Request;
use crate::state::{AgentState, StartedCall};
use crate::time::Timestamp;
use crate::usage::{Price, Usage};
use crate::window::Window;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// What the driver knows about the world and the machine needs.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What requests hold besides their messages; journalled when it changes.
    pub context: Context,
    /// The model's window in tokens, where it is known.
    pub model_window: Option<u64>,
    pub price: Option<Price>,
    /// The tools that may run beside each other.
    pub parallel: BTreeSet<String>,
    /// Failed tries in a row, after which the turn fails.
    pub max_failures: u32,
    /// The model cannot be asked before somebody brings its key; what to tell them.
    pub missing_key: Option<String>,
    pub hooks: Hooks,
}

/// Whether somebody runs hooks for this agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hooks {
    #[default]
    None,
    Asked,
}

/// The moment, and a source of new ids: neither is to be had in this crate.
pub struct Moment<'a> {
    pub at: Timestamp,
    pub new_id: &'a mut dyn FnMut() -> Uuid,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// An event was committed to this agent's journal, by whomever. All events of one append are fed in
    /// before anything that they call for is carried out.
    Event(Event),
    /// The append that was asked for is committed; all its events have been fed in before this.
    Appended,
    /// The model's reply is whole.
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
        /// For people.
        detail: String,
        partial: Reply,
    },
    /// The request was let go of, as [`Effect::CancelRequest`] asked.
    RequestCancelled {
        request: TryId,
        partial: Reply,
    },
    /// What [`Effect::PrepareTool`] came to.
    Prepared {
        call: CallId,
        prepared: Prepared,
    },
    ToolFinished {
        call: CallId,
        finished: Finished,
    },
    /// A background task is over; the model is told at the next boundary.
    TaskEnded {
        task: TaskId,
        exit: TaskExit,
        /// What the model is told.
        text: String,
    },
    /// The wait that [`Effect::Backoff`] asked for is over.
    BackoffOver,
    /// What the hooks say to [`Effect::InvokeHooks`].
    HooksAnswered {
        id: InvocationId,
        verdict: Verdict,
    },
    /// A hook of a call wants the turn to end now, for this reason.
    Halt(String),
    /// A time limit of the turn is used up, as [`Machine::deadline`] said it would be.
    TimeUp {
        turn: TurnId,
        limit: LimitKind,
    },
    /// The user wants the turn to end now.
    Interrupt,
    /// The same for one turn; where that is over, nothing is interrupted.
    InterruptTurn(TurnId),
    /// Take up the turn that ended as `limited`, or the one that is paused.
    Continue,
    /// Finish what is in hand, start nothing new: the turn goes on in another process, unless it
    /// happens to end.
    Stop,
    /// The same, but the model's reply is not waited for: what has come of it is kept, and the next process asks
    /// again.
    Leave,
}

/// Whether a call may begin.
#[derive(Clone, Debug, PartialEq)]
pub enum Prepared {
    /// It may, as soon as this is durable.
    Run(ToolStarted),
    /// The user must be asked, for this reason.
    Ask(String),
    /// It may not, or cannot.
    Refuse {
        outcome: CallOutcome,
        blocks: Vec<Block>,
    },
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    pub outcome: CallOutcome,
    pub blocks: Vec<Block>,
    /// The task that it leaves running.
    pub background: Option<TaskStarted>,
    /// What else is to be on record with its result.
    pub also: Vec<Body>,
}

impl Finished {
    /// One that leaves nothing running.
    pub const fn new(outcome: CallOutcome, blocks: Vec<Block>) -> Self {
        Self {
            outcome,
            blocks,
            background: None,
            also: Vec::new(),
        }
    }
}

/// Whether the user has said yes to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    NotAsked,
    Given,
}

/// Something to be done.
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
    /// Check permission and arguments, and find out what a start must record.
    PrepareTool {
        call: ToolCall,
        consent: Consent,
    },
    RunTool {
        call: ToolCall,
        /// As its start is on record.
        started: StartedCall,
    },
    CancelTool {
        call: CallId,
    },
    /// Tell the hooks, and wait for what they say. Asked again by another process, it has the same answer.
    InvokeHooks {
        invocation: Box<HookInvocation>,
    },
    /// Wait a little (longer with each failure, with jitter) before the next try.
    Backoff {
        failures: u32,
        at_least_ms: Option<u64>,
    },
    /// The agent has another conversation now: this machine is done. The next one needs a fresh
    /// incarnation, because it counts its requests from 1.
    Reload {
        conversation: ConversationId,
        through: Seq,
    },
    /// Nothing is in hand any more, after [`Input::Stop`]: this machine is done.
    Stopped,
}

impl Input {
    /// What an order of the daemon's comes to.
    pub const fn of_order(order: Order, turn: Option<TurnId>) -> Self {
        match (order, turn) {
            (Order::Interrupt, Some(turn)) => Self::InterruptTurn(turn),
            (Order::Interrupt, None) => Self::Interrupt,
            (Order::Continue, _) => Self::Continue,
            (Order::Stop, _) => Self::Stop,
            (Order::Leave, _) => Self::Leave,
        }
    }
}

/// What the machine has in its hands: all that a crash takes with it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Live {
    appending: bool,
    /// What the next append holds.
    backlog: Vec<Body>,
    ends: Option<TryId>,
    /// The next request, until it leaves.
    built: Option<Built>,
    /// The request that has left.
    sent: Option<TryId>,
    cancelling: bool,
    calls: BTreeMap<CallId, LiveCall>,
    /// Ends of tasks that are said at the next boundary: between a request and its reply, or a call
    /// and its result, they would change what was sent.
    ended_tasks: Vec<Body>,
    /// Calls about which the user must be asked.
    ask: Vec<(CallId, String)>,
    /// The turn that the next append begins.
    next_turn: Option<TurnId>,
    /// A turn's beginning is on its way to the journal.
    starting: bool,
    /// What the summary that was asked for is to stand for.
    cut: Option<Position>,
    /// An answer did not fit, and no summary has come since.
    overflowed: bool,
    /// A summary did not help; it is not tried again in this turn.
    compaction_failed: bool,
    /// The newest failure was that of a summary, and ends nothing.
    forgiven: bool,
    /// Requests of this incarnation so far.
    tries: u64,
    backoff: Backoff,
    /// The hooks were asked this.
    asked: Option<InvocationId>,
    heard: Option<(InvocationId, Verdict)>,
    /// The user does not want the prompt any more that they were asked about.
    unwanted: Option<InvocationId>,
    shortened: Option<hooks::Shortened>,
    /// Why a hook has the turn end.
    halted: Option<String>,
    /// The time limit that has the turn end.
    limited: Option<deadline::Limited>,
    interrupting: bool,
    stopping: bool,
    /// The request that is out is let go of.
    leaving: bool,
    stopped: bool,
    /// `continue` was asked for.
    continue_asked: bool,
    /// The pointer has moved away.
    reloaded: bool,
}

/// A request as it was built when it was decided on: a long conversation is not gone through twice for it.
#[derive(Clone, Debug, PartialEq)]
struct Built {
    id: TryId,
    /// How many items the window had. Others may add one before the request is on record.
    items: usize,
    request: Box<Request>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LiveCall {
    Preparing,
    /// May run once its start is durable.
    Prepared,
    Running,
    Cancelling,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Backoff {
    #[default]
    None,
    Wanted(Option<u64>),
    Waiting,
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
    /// A machine on a journal that was recovered; `running` are the calls whose processes still run.
    pub fn new(
        agent: AgentState,
        window: Window,
        policy: Policy,
        running: impl IntoIterator<Item = CallId>,
    ) -> Self {
        let calls = running.into_iter().map(|id| (id, LiveCall::Running));
        let last_failure = agent.turn.as_ref().and_then(|turn| turn.last_failure);
        let live = Live {
            calls: calls.collect(),
            interrupting: agent.turn.is_some() && agent.ends_turn(),
            overflowed: last_failure == Some(FailureClass::ContextOverflow),
            shortened: hooks::Shortened::untold(&agent, &window),
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

    /// What the state calls for when nothing new has happened: the first effects after a start.
    pub fn start(&mut self, moment: &mut Moment<'_>) -> Vec<Effect> {
        self.plan(moment)
    }

    pub fn step(&mut self, moment: &mut Moment<'_>, input: Input) -> Vec<Effect> {
        self.absorb(input);
        self.plan(moment)
    }
}
