//! The reset machine: what the journal says is to be done next, and what to append for it.
//!
//! Undo, redo and rewind are resets too: they lead to another conversation. Each step is on record, so
//! whoever finds a reset under way, after whatever crash, goes on where it was: [`next`].

use crate::begin::{self, Line, Queue, Refused};
use crate::branch_point::BranchPoint;
use crate::event::{
    Body, Direction, Event, HookOutcome, Mode, PromptsSetAside, ResetBegan, ResetEnded,
    ResetRefusal, ResetSource, ResetStep, ResetStepped, ResetTo, ResetWithdrawn, SubagentOutcome,
};
use crate::hook::{Decision, HookEvent};
use crate::id::{CallId, ConversationId, HookId, OpId, PromptId, TaskId};
use crate::message::CallOutcome;
use crate::state::{AgentState, Outcome, Reset};
use crate::window::Window;
use serde::{Deserialize, Serialize};
use std::mem::discriminant;

/// What a reset calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// None is under way.
    Nothing,
    /// Hooks; then [`stepped`].
    Hooks(ResetStep),
    /// The turn is to end, and the process; then [`stepped`].
    Stop,
    /// [`switch`].
    Switch,
    /// [`end`].
    End,
}

pub fn next(state: &AgentState) -> Next {
    let Some(reset) = state.resets.under_way() else {
        return Next::Nothing;
    };
    match reset.done {
        None => Next::Hooks(ResetStep::PreReset),
        Some(ResetStep::PreReset) => Next::Stop,
        Some(ResetStep::Stop) => Next::Hooks(ResetStep::SessionEnd),
        Some(ResetStep::SessionEnd) => Next::Switch,
        Some(ResetStep::Switch) => Next::Hooks(ResetStep::SessionStart),
        Some(ResetStep::SessionStart) => Next::End,
    }
}

/// What an order comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Begin {
    /// Append this.
    Append(Line),
    /// This very one is under way.
    UnderWay,
    /// It was made before.
    Over(Outcome),
}

/// Whether a reset may begin. One that has begun or is over does nothing more.
pub fn begin(state: &AgentState, order: ResetBegan) -> Result<Begin, Refused> {
    let known = state.resets.asked_for(order.op);
    let is_other = match known {
        Some(known) => discriminant(known) != discriminant(&order.to),
        None => state.ops.get(order.op).is_some() || state.compactions.is_known(order.op),
    };
    if is_other {
        return Err(Refused::OtherOp(Box::new(order.op)));
    }
    if let Some(outcome) = state.resets.outcome(order.op) {
        return Ok(Begin::Over(outcome));
    }
    if let Some(reset) = state.resets.under_way() {
        return match reset.order.op == order.op {
            true => Ok(Begin::UnderWay),
            false => Err(Refused::Resetting(Box::new(reset.order.op))),
        };
    }
    if state.mode == Mode::Oneshot {
        return Err(Refused::Oneshot);
    }
    let current = state.tree.current().ok_or(Refused::NoConversation)?;
    match order.to {
        ResetTo::Undo if state.tree.undo_target().is_none() => Err(Refused::NothingToUndo),
        ResetTo::Redo if state.tree.redo_target().is_none() => Err(Refused::NothingToRedo),
        ResetTo::Rewind { at, conversation } => {
            let conversation = conversation.unwrap_or(current);
            begin::origin(state, BranchPoint { conversation, at })?;
            Ok(Begin::Append((current, order.into())))
        }
        _ => Ok(Begin::Append((current, order.into()))),
    }
}

/// Says that a step is done.
pub fn stepped(state: &AgentState, step: ResetStep) -> Option<Line> {
    let reset = state.resets.under_way()?;
    let op = reset.order.op;
    Some((current(state, reset), ResetStepped { op, step }.into()))
}

/// The conversation that the reset under way leads to, before it is there: hooks are told of it.
pub fn target(state: &AgentState) -> Option<ConversationId> {
    let order = &state.resets.under_way()?.order;
    match order.to {
        ResetTo::Undo => state.tree.undo_target(),
        ResetTo::Redo => state.tree.redo_target(),
        ResetTo::Fresh | ResetTo::Rewind { .. } => Some(ConversationId::of_op(state.id, order.op)),
    }
}

/// What its hooks are told: how it goes on, and from where.
pub const fn source(to: ResetTo) -> &'static str {
    match to {
        ResetTo::Fresh => "clear",
        ResetTo::Undo => "undo",
        ResetTo::Redo => "redo",
        ResetTo::Rewind { .. } => "rewind",
    }
}

/// Makes the other conversation the current one. `seen` is what the model saw up to where a rewind goes;
/// nothing else looks at it.
pub fn switch(
    state: &AgentState,
    window: &Window,
    seen: &Window,
    new: ConversationId,
) -> Result<Vec<Line>, Refused> {
    let Some(reset) = state.resets.under_way() else {
        return Ok(Vec::new());
    };
    let op = Some(reset.order.op);
    let queue = match reset.order.keep_queue {
        true => Queue::Keep,
        false => Queue::SetAside,
    };
    let mut lines = match reset.order.to {
        ResetTo::Fresh => begin::reset(state, window, new, queue, op)?,
        ResetTo::Undo => begin::step(state, window, Direction::Undo, op)?,
        ResetTo::Redo => begin::step(state, window, Direction::Redo, op)?,
        ResetTo::Rewind { at, conversation } => {
            let conversation = conversation.unwrap_or(reset.old);
            let place = BranchPoint { conversation, at };
            begin::rewind(state, window, seen, place, new, queue, op)?
        }
    };
    let target = lines.last().map_or(new, |(conversation, _)| *conversation);
    let step = ResetStep::Switch;
    let op = reset.order.op;
    lines.push((target, ResetStepped { op, step }.into()));
    Ok(lines)
}

pub fn end(state: &AgentState) -> Option<Line> {
    let reset = state.resets.under_way()?;
    let new = current(state, reset);
    let (op, old) = (reset.order.op, reset.old);
    let kept = state.tasks.running().map(|(task, _)| *task);
    let kept_subagents = state.children.running();
    let ended = ResetEnded {
        op,
        old,
        new,
        name: state.name.clone(),
        kept: kept.collect(),
        kept_subagents: kept_subagents
            .map(|(_, child)| child.name.clone())
            .collect(),
    };
    Some((new, ended.into()))
}

/// Gives it up. Only before [`ResetStep::SessionEnd`]: from there on it goes forward, unless what it was
/// to go to was purged meanwhile.
pub fn withdraw(state: &AgentState, why: ResetRefusal) -> Option<Line> {
    let reset = state.resets.under_way()?;
    let last = match why {
        ResetRefusal::NoTarget => ResetStep::Switch,
        ResetRefusal::StillActive | ResetRefusal::Hook => ResetStep::SessionEnd,
    };
    let may = reset.done < Some(last);
    let op = reset.order.op;
    may.then(|| (current(state, reset), ResetWithdrawn { op, why }.into()))
}

fn current(state: &AgentState, reset: &Reset) -> ConversationId {
    state.tree.current().unwrap_or(reset.old)
}

/// What whoever asked for a reset gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub op: OpId,
    pub old: ConversationId,
    pub new: ConversationId,
    pub killed: Killed,
    /// Background tasks that go on.
    pub kept: Vec<TaskId>,
    /// Subagents that go on in the background.
    #[serde(default)]
    pub kept_subagents: Vec<String>,
    /// Prompts that are sealed with the old conversation.
    pub set_aside: Vec<PromptId>,
    pub hooks: Vec<HookReport>,
    /// The command that takes it back.
    pub undo: String,
    /// Who wanted it.
    #[serde(default)]
    pub source: ResetSource,
}

/// What became of a hook that heard of the reset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookReport {
    pub hook: HookId,
    pub event: HookEvent,
    /// None where it still runs.
    pub outcome: Option<HookOutcome>,
    pub decision: Decision,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Killed {
    pub calls: Vec<CallId>,
    pub tasks: Vec<TaskId>,
    #[serde(default)]
    pub subagents: Vec<String>,
}

impl Killed {
    /// What was ended in this stretch of the journal. What ended by itself meanwhile is not in it.
    pub fn of(state: &AgentState, events: &[Event]) -> Self {
        let mut killed = Self::default();
        for event in events {
            match &event.body {
                Body::ToolEnded(ended) if ended.outcome == CallOutcome::Interrupted => {
                    killed.calls.push(ended.call.clone());
                }
                Body::TaskEnded(ended) if ended.killed => killed.tasks.push(ended.task),
                Body::SubagentEnded(ended) if was_stopped(ended.outcome) => {
                    let child = state.children.get(ended.agent);
                    let name = child.map(|child| child.name.clone());
                    killed.subagents.extend(name);
                }
                _ => {}
            }
        }
        killed
    }
}

/// The receipt of a reset that ended; `events` are those from its beginning to its end. It says what was then, and
/// not what is now: whoever asks again is told the same.
pub fn receipt(state: &AgentState, op: OpId, events: &[Event]) -> Option<Receipt> {
    let Some(Outcome::Ended { old, new, .. }) = state.resets.outcome(op) else {
        return None;
    };
    let mut receipt = Receipt {
        op,
        old,
        new,
        killed: Killed::of(state, events),
        kept: Vec::new(),
        kept_subagents: Vec::new(),
        set_aside: Vec::new(),
        hooks: Vec::new(),
        undo: String::new(),
        source: ResetSource::User,
    };
    let mut way_back = "--undo";
    for event in events {
        match &event.body {
            Body::PromptsSetAside(PromptsSetAside { prompts }) => {
                receipt.set_aside.extend(prompts);
            }
            Body::HookStarted(started) if started.op == Some(op) => {
                receipt.hooks.push(HookReport {
                    hook: started.hook,
                    event: started.event,
                    outcome: None,
                    decision: Decision::None,
                });
            }
            Body::HookEnded(ended) => {
                let mut reports = receipt.hooks.iter_mut();
                if let Some(report) = reports.find(|report| report.hook == ended.hook) {
                    report.outcome = Some(ended.outcome);
                    report.decision = ended.decision;
                }
            }
            Body::ResetBegan(order) if order.op == op => {
                receipt.source = order.source;
                if order.to == ResetTo::Undo {
                    way_back = "--redo";
                }
            }
            Body::ResetEnded(ended) if ended.op == op => {
                receipt.kept.clone_from(&ended.kept);
                receipt.kept_subagents.clone_from(&ended.kept_subagents);
                receipt.undo = format!("agentd reset {} {way_back}", ended.name);
            }
            _ => {}
        }
    }
    Some(receipt)
}

/// Whether a subagent was ended, rather than having ended by itself.
const fn was_stopped(outcome: SubagentOutcome) -> bool {
    matches!(
        outcome,
        SubagentOutcome::Interrupted | SubagentOutcome::Deleted
    )
}

#[cfg(test)]
mod tests;
