//! The reset machine: what to do next according to the journal, and what to append for it.
//!
//! Undo, redo and rewind are resets too, to another conversation. Each step is recorded, so after a crash the next
//! process continues an unfinished reset with the next step: [`next`].

use crate::begin::{self, Line, Queue};
use crate::branch_point::BranchPoint;
use crate::event::{
    Body, Direction, Event, HookOutcome, Mode, PromptsSetAside, ResetBegan, ResetEnded,
    ResetRefusal, ResetSource, ResetStep, ResetStepped, ResetTo, ResetWithdrawn, SubagentOutcome,
};
use crate::hook::{Decision, HookEvent};
use crate::id::{CallId, ConversationId, HookId, OpId, PromptId, TaskId};
use crate::message::CallOutcome;
use crate::outer::ProgramMemory;
use crate::refused::Refused;
use crate::state::{AgentState, Outcome, Reset};
use crate::window::Window;
use serde::{Deserialize, Serialize};
use std::mem::discriminant;

/// The next step of a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// No reset is in progress.
    Nothing,
    /// Run hooks; then [`stepped`].
    Hooks(ResetStep),
    /// End the turn and the process; then [`stepped`].
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

/// The result of requesting a reset.
#[derive(Clone, Debug, PartialEq)]
pub enum Begin {
    /// Append this.
    Append(Line),
    /// The same reset is already in progress.
    UnderWay,
    /// It was already completed.
    Over(Outcome),
}

/// Whether a reset may begin. A request for a reset that has already begun or ended does nothing.
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

/// Records that a step is complete.
pub fn stepped(state: &AgentState, step: ResetStep) -> Option<Line> {
    let reset = state.resets.under_way()?;
    let op = reset.order.op;
    Some((current(state, reset), ResetStepped { op, step }.into()))
}

/// The conversation that the reset in progress leads to, for hooks that run before it exists.
pub fn target(state: &AgentState) -> Option<ConversationId> {
    let order = &state.resets.under_way()?.order;
    match order.to {
        ResetTo::Undo => state.tree.undo_target(),
        ResetTo::Redo => state.tree.redo_target(),
        ResetTo::Fresh | ResetTo::Rewind { .. } => Some(ConversationId::of_op(state.id, order.op)),
    }
}

/// The kind of reset as hooks see it.
pub const fn source(to: ResetTo) -> &'static str {
    match to {
        ResetTo::Fresh => "clear",
        ResetTo::Undo => "undo",
        ResetTo::Redo => "redo",
        ResetTo::Rewind { .. } => "rewind",
    }
}

/// Makes the target conversation the current one. `seen` is what the model saw up to the branch point of a rewind;
/// other resets do not use it.
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
            let point = BranchPoint { conversation, at };
            begin::rewind(state, window, seen, point, new, queue, op)?
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

/// Ends the reset of an agent whose home was restored from a backup: no hook runs for it there, and nothing is switched.
pub fn end_in_restored_home(state: &AgentState) -> Option<Line> {
    withdraw(state, ResetRefusal::HomeRestored).or_else(|| end(state))
}

/// Withdraws the reset. Only possible before [`ResetStep::SessionEnd`]; after that it is completed, unless its target
/// was purged in the meantime or the home was restored from a backup.
pub fn withdraw(state: &AgentState, why: ResetRefusal) -> Option<Line> {
    let reset = state.resets.under_way()?;
    let last = match why {
        ResetRefusal::NoTarget | ResetRefusal::HomeRestored => ResetStep::Switch,
        ResetRefusal::StillActive | ResetRefusal::Hook => ResetStep::SessionEnd,
    };
    let may = reset.done < Some(last);
    let op = reset.order.op;
    may.then(|| (current(state, reset), ResetWithdrawn { op, why }.into()))
}

fn current(state: &AgentState, reset: &Reset) -> ConversationId {
    state.tree.current().unwrap_or(reset.old)
}

/// The receipt of a reset, for the client that requested it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub op: OpId,
    pub old: ConversationId,
    pub new: ConversationId,
    pub killed: Killed,
    /// Background tasks that continue.
    pub kept: Vec<TaskId>,
    /// Subagents that continue in the background.
    #[serde(default)]
    pub kept_subagents: Vec<String>,
    /// Prompts that were set aside with the old conversation.
    pub set_aside: Vec<PromptId>,
    pub hooks: Vec<HookReport>,
    /// The command that reverses it.
    pub undo: String,
    /// Who requested it.
    #[serde(default)]
    pub source: ResetSource,
    /// What the agent's program knows of the conversation; none for an agent without a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramMemory>,
}

/// The result of a hook that ran for the reset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookReport {
    pub hook: HookId,
    pub event: HookEvent,
    /// `None` while it is running.
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
    /// What was ended in this part of the journal. What ended by itself in the meantime is not included.
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

/// The receipt of a completed reset; `events` are those from its beginning to its end. It describes the state at that
/// time, so a repeated request gets the same receipt.
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
        program: None,
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
                receipt.program = ProgramMemory::after_reset(state.spec.runtime, &order.to);
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

/// Whether a subagent was ended by the reset and did not end by itself.
const fn was_stopped(outcome: SubagentOutcome) -> bool {
    matches!(
        outcome,
        SubagentOutcome::Interrupted | SubagentOutcome::Deleted
    )
}

#[cfg(test)]
mod tests;
