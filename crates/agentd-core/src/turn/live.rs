//! What the machine holds in memory: everything that a crash takes with it.

use super::{deadline, hooks};
use crate::event::{Body, LimitKind, Position};
use crate::hook::Verdict;
use crate::id::{ApprovalId, CallId, InvocationId, TryId, TurnId};
use crate::mcp::{Question, QuestionReply, Seen};
use crate::request::Request;
use crate::usage::{MicroUsd, Usage};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Live {
    pub outbox: Outbox,
    pub request: InRequest,
    pub calls: BTreeMap<CallId, LiveCall>,
    /// What the user is to be asked about a call.
    pub ask: Vec<(CallId, Asking)>,
    /// What the user filled in, until the decision that follows it.
    pub content: Option<(ApprovalId, Map<String, Value>)>,
    /// The questions of running calls that were asked and not withdrawn.
    pub questions: BTreeMap<ApprovalId, CallId>,
    /// Replies of the user to them.
    pub replies: Vec<(ApprovalId, CallId, QuestionReply)>,
    pub looks: Looks,
    /// Ends of tasks, to be reported at the next boundary. Between a request and its reply, or a call and its result,
    /// they would change what was sent.
    pub ended_tasks: Vec<Body>,
    pub turn: InTurn,
    /// The turn whose changes by commands are being found.
    pub scanning: Option<TurnId>,
    /// `continue` was requested. It is taken by the next plan.
    pub continue_asked: bool,
    /// No turn may begin yet.
    pub holds_turns: bool,
    pub process: Ending,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Asking {
    /// Whether the call may start. The reason why that is asked.
    Approval(String),
    /// A question of the MCP server that the call runs on, and the id that the driver gave it.
    Question(ApprovalId, Question),
}

/// The looks at MCP servers, over all turns of this process.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Looks {
    /// The number of the newest one.
    pub newest: u64,
    /// Lists that no turn has recorded yet, by server: a look ended after its turn. With the numbers of the looks.
    pub late: BTreeMap<String, (u64, Seen)>,
    /// The look that found the recorded list, by server. An older one is not recorded after it.
    pub recorded: BTreeMap<String, u64>,
}

/// Events on their way to the journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outbox {
    pub appending: bool,
    /// The events of the next append.
    pub backlog: Vec<Body>,
    /// The draft that the next append ends.
    pub ends: Option<TryId>,
    /// The turn that the next append begins.
    pub next_turn: Option<TurnId>,
    /// The start of a turn is being appended.
    pub starting: bool,
}

/// The request to the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct InRequest {
    /// The next request, until it is sent.
    pub built: Option<Built>,
    /// The request that was sent.
    pub sent: Option<TryId>,
    pub cancelling: bool,
    /// The position up to which the requested summary replaces the window.
    pub cut: Option<Position>,
    /// Requests of this incarnation so far.
    pub tries: u64,
    /// What the program of an outer agent has reported to have used in its turn, and its cost.
    pub usage: Option<Usage>,
    pub cost: Option<MicroUsd>,
}

/// What ends with the turn. The end of a turn replaces it by the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct InTurn {
    /// An answer did not fit, and there has been no summary since.
    pub overflowed: bool,
    /// A summary did not help. It is not tried again in this turn.
    pub compaction_failed: bool,
    /// The newest failure was a failed summary, which does not end the turn.
    pub forgiven: bool,
    pub backoff: Backoff,
    pub instructions: Looked,
    pub mcp: Looked,
    /// The hook invocation in progress. Hooks are asked about a prompt before its turn begins.
    pub asked: Option<InvocationId>,
    pub heard: Option<(InvocationId, Verdict)>,
    /// The invocation in progress is about a prompt that the user has interrupted.
    pub unwanted: Option<InvocationId>,
    pub shortened: Option<hooks::Shortened>,
    /// Why a hook ends the turn.
    pub halted: Option<String>,
    /// Why the program of an outer agent ended while the turn waited for the user.
    pub child_gone: Option<String>,
    /// The same, while a call was being prepared. Taken when that is done.
    pub gone_while_preparing: Option<String>,
    /// The limit of its own that ended the turn of an outer agent's program.
    pub child_limited: Option<LimitKind>,
    /// The agent had no hooks when the newest prompt of this turn was submitted.
    pub hookless: bool,
    /// The time limit that ends the turn.
    pub limited: Option<deadline::Limited>,
    pub interrupting: bool,
}

/// Whether the instruction files were compared with what the model knows, since the newest prompt or result; and whether
/// the MCP servers were looked at in this turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Looked {
    #[default]
    NotYet,
    Asked,
    Done,
}

/// How the process of this machine ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ending {
    pub stopping: bool,
    /// The reply to the request in flight is not waited for.
    pub leaving: bool,
    pub stopped: bool,
    /// Another conversation has become current.
    pub reloaded: bool,
}

/// A request as it was built when it was decided on, so that a long conversation is not processed twice.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Built {
    pub id: TryId,
    /// The number of items in the window. An item may be added before the request is recorded.
    pub items: usize,
    pub request: Box<Request>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LiveCall {
    Preparing,
    /// May run once its start is durable.
    Prepared,
    Running,
    Cancelling,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Backoff {
    #[default]
    None,
    Wanted(Option<u64>),
    Waiting,
}
