//! Beginning a conversation is one primitive: a conversation begins empty or from a branch point of another one.
//! Create, reset, rewind and fork use it. Undo and redo make an earlier conversation the current one again.
//!
//! Each function returns the events of one append, so a change is applied completely or not at all.

pub use crate::refused::Refused;

use crate::branch_point::BranchPoint;
use crate::event::{
    AgentCreated, AgentHeld, BeginSource, Body, CheckpointSet, ConversationBegan,
    ConversationSealed, Direction, HoldReason, Mode, Notice, NoticeCause, Origin, PointerMoved,
    Prompt, PromptQueued, PromptsRequeued, PromptsSetAside, SealReason, SpecSet, TaskExit,
};
use crate::id::{ConversationId, OpId, PromptId};
use crate::recover::{close_branch, open_fork};
use crate::spec::AgentSpec;
use crate::state::{AgentState, Conversation, EndedTask, Queued};
use crate::window::Window;

/// The label on the first position of every conversation.
pub const INIT: &str = "init";

/// An event, and the conversation it belongs to.
pub type Line = (ConversationId, Body);

/// What happens to queued prompts when their conversation is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// They stay with the sealed conversation, and return to the queue if an undo returns to it.
    SetAside,
    /// They move to the new conversation.
    Keep,
}

/// The agent that a fork creates.
#[derive(Clone, Debug)]
pub struct NewFork<'a> {
    pub name: &'a str,
    pub mode: Mode,
    /// None: the settings of its parent.
    pub spec: Option<Box<AgentSpec>>,
}

impl<'a> NewFork<'a> {
    /// A persistent agent with its parent's settings.
    pub const fn persistent(name: &'a str) -> Self {
        Self {
            name,
            mode: Mode::Persistent,
            spec: None,
        }
    }
}

/// A new agent and its first conversation.
pub fn create(name: &str, mode: Mode, spec: &AgentSpec, conversation: ConversationId) -> Vec<Line> {
    let name = name.to_owned();
    let spec = Box::new(spec.clone());
    let mut lines = vec![
        (conversation, AgentCreated { name, mode }.into()),
        (conversation, SpecSet { spec }.into()),
    ];
    lines.extend(open(conversation, BeginSource::Create, None, None, None));
    lines
}

/// Seals the current conversation and begins an empty one.
pub fn reset(
    state: &AgentState,
    window: &Window,
    new: ConversationId,
    queue: Queue,
    op: Option<OpId>,
) -> Result<Vec<Line>, Refused> {
    let old = leavable(state)?;
    let (aside, along) = sorted(state, queue);
    let mut lines: Vec<Line> = set_aside(old.id, aside).into_iter().collect();
    lines.push(seal(old, SealReason::Reset, op));
    lines.extend(open(new, BeginSource::Reset, Some(old.id), None, op));
    lines.extend(carried_prompts(window, new, &along));
    lines.extend(carried_tasks(state).map(|told| (new, told)));
    Ok(lines)
}

/// Makes the target of undo or redo the current conversation.
pub fn step(
    state: &AgentState,
    window: &Window,
    direction: Direction,
    op: Option<OpId>,
) -> Result<Vec<Line>, Refused> {
    let old = leavable(state)?;
    let (to, reason) = match direction {
        Direction::Undo => (state.tree.undo_target(), SealReason::Undo),
        Direction::Redo => (state.tree.redo_target(), SealReason::Redo),
    };
    let to = to.ok_or(match direction {
        Direction::Undo => Refused::NothingToUndo,
        Direction::Redo => Refused::NothingToRedo,
    })?;
    let aside = state.inbox.set_aside_prompts();
    let back = aside.filter(|queued| queued.conversation == to);
    let back: Vec<PromptId> = back.map(|queued| queued.prompt).collect();
    let (aside, along) = sorted(state, Queue::SetAside);
    let mut lines: Vec<Line> = set_aside(old.id, aside).into_iter().collect();
    lines.push(seal(old, reason, op));
    lines.push((to, PointerMoved { to, direction, op }.into()));
    if !back.is_empty() {
        lines.push((to, PromptsRequeued { prompts: back }.into()));
    }
    lines.extend(ended_tasks(state, to).map(|told| (to, told)));
    lines.extend(carried_prompts(window, to, &along));
    Ok(lines)
}

/// Begins a conversation from a branch point of this agent. `seen` is what the model saw up to that point.
pub fn rewind(
    state: &AgentState,
    window: &Window,
    seen: &Window,
    point: BranchPoint,
    new: ConversationId,
    queue: Queue,
    op: Option<OpId>,
) -> Result<Vec<Line>, Refused> {
    let old = leavable(state)?;
    let from = origin(state, point)?;
    let (aside, along) = sorted(state, queue);
    let mut lines: Vec<Line> = set_aside(old.id, aside).into_iter().collect();
    lines.push(seal(old, SealReason::Rewind, op));
    lines.extend(open(new, BeginSource::Rewind, Some(old.id), Some(from), op));
    lines.extend(close_branch(seen).into_iter().map(|body| (new, body)));
    lines.extend(ended_since(state, point).map(|told| (new, told)));
    lines.extend(carried_prompts(window, new, &along));
    lines.extend(carried_tasks(state).map(|told| (new, told)));
    Ok(lines)
}

/// Creates an agent whose first conversation begins from a branch point of another agent. `seen` is what the other
/// agent's model saw up to that point. The other agent is not affected: its tasks, approvals and queue stay with it,
/// and a notice tells the new agent so.
pub fn fork(
    parent: &AgentState,
    seen: &Window,
    point: BranchPoint,
    agent: NewFork<'_>,
    new: ConversationId,
    op: Option<OpId>,
) -> Result<Vec<Line>, Refused> {
    let from = origin(parent, point)?;
    let (name, mode) = (agent.name.to_owned(), agent.mode);
    let spec = agent.spec.unwrap_or_else(|| parent.spec.clone());
    let mut lines = vec![
        (new, AgentCreated { name, mode }.into()),
        (new, SpecSet { spec }.into()),
    ];
    lines.extend(open(new, BeginSource::Fork, None, Some(from), op));
    let told = open_fork(seen, &parent.name);
    lines.extend(told.into_iter().map(|body| (new, body)));
    if parent.is_held() {
        // The fork has the settings of a held agent, which the user has not reviewed yet.
        let reason = HoldReason::Forked;
        lines.push((new, AgentHeld { reason }.into()));
    }
    Ok(lines)
}

/// The current conversation, unless a turn is in progress.
fn leavable(state: &AgentState) -> Result<&Conversation, Refused> {
    if state.turn.is_some() {
        return Err(Refused::TurnUnderWay);
    }
    let current = state.tree.current_conversation();
    current.ok_or(Refused::NoConversation)
}

/// The origin of a conversation that begins at this branch point, if one may begin there.
pub(crate) fn origin(state: &AgentState, point: BranchPoint) -> Result<Origin, Refused> {
    let BranchPoint { conversation, at } = point;
    let known = state.tree.get(conversation);
    let known = known.ok_or(Refused::NoSuchConversation(conversation))?;
    if known.purged {
        return Err(Refused::Purged(known.id));
    }
    if at < known.began || at > known.head {
        return Err(Refused::NotThere(at));
    }
    Ok(Origin {
        agent: state.id,
        conversation,
        seq: at,
    })
}

/// The prompts that stay with the old conversation, and the prompts that move to the new one. A prompt that was
/// accepted after the reset was requested is meant for the new conversation.
fn sorted(state: &AgentState, queue: Queue) -> (Vec<PromptId>, Vec<Queued>) {
    let asked = state.resets.under_way().map(|reset| reset.began);
    let goes_along = |queued: &Queued| match queue {
        Queue::Keep => true,
        Queue::SetAside => asked.is_some_and(|asked| queued.seq > asked),
    };
    let waiting = state.inbox.waiting().cloned();
    let (along, aside): (Vec<_>, Vec<_>) = waiting.partition(goes_along);
    (aside.iter().map(|queued| queued.prompt).collect(), along)
}

/// Queues the same prompts again, with their text, in the conversation that they move to.
fn carried_prompts(window: &Window, to: ConversationId, along: &[Queued]) -> Vec<Line> {
    let mut lines = Vec::new();
    for queued in along {
        let Some(blocks) = window.pending(queued.prompt) else {
            continue;
        };
        let (prompt, key, mode) = (queued.prompt, None, queued.mode);
        let blocks = blocks.to_vec();
        lines.push((to, PromptQueued { prompt, key, mode }.into()));
        lines.push((to, Prompt { prompt, blocks }.into()));
    }
    lines
}

fn set_aside(old: ConversationId, prompts: Vec<PromptId>) -> Option<Line> {
    let line = |prompts| (old, PromptsSetAside { prompts }.into());
    (!prompts.is_empty()).then(|| line(prompts))
}

fn seal(old: &Conversation, reason: SealReason, op: Option<OpId>) -> Line {
    let last_request = old.last_request.clone();
    let sealed = ConversationSealed {
        reason,
        last_request,
        op,
    };
    (old.id, sealed.into())
}

fn open(
    new: ConversationId,
    source: BeginSource,
    parent: Option<ConversationId>,
    from: Option<Origin>,
    op: Option<OpId>,
) -> [Line; 2] {
    let began = ConversationBegan {
        source,
        parent,
        from,
        op,
    };
    let init = CheckpointSet {
        label: INIT.to_owned(),
        at: None,
    };
    [(new, began.into()), (new, init.into())]
}

/// The notice in the new conversation about tasks and subagents that are still running.
fn carried_tasks(state: &AgentState) -> Option<Body> {
    let tasks: Vec<String> = state
        .tasks
        .running()
        .map(|(id, task)| format!("{id} ({})", task.tool))
        .collect();
    let subagents: Vec<&str> = state
        .children
        .running()
        .map(|(_, child)| child.name.as_str())
        .collect();
    let mut parts = Vec::new();
    if !tasks.is_empty() {
        parts.push(format!(
            "These background tasks were started in an earlier conversation and are still running: {}.",
            tasks.join(", ")
        ));
    }
    if !subagents.is_empty() {
        parts.push(format!(
            "These subagents were started in an earlier conversation and continue in the background; their \
             answers arrive as messages: {}.",
            subagents.join(", ")
        ));
    }
    let cause = NoticeCause::TasksCarried;
    let text = parts.join(" ");
    (!parts.is_empty()).then(|| Notice { cause, text }.into())
}

/// The notice in a conversation that becomes current again about its tasks that have ended in the meantime.
fn ended_tasks(state: &AgentState, to: ConversationId) -> Option<Body> {
    let when = "ended while another conversation was the current one";
    told_of(when, state.tasks.untold(to).iter())
}

/// The notice in a branch about tasks that were running at its branch point and have ended since.
fn ended_since(state: &AgentState, point: BranchPoint) -> Option<Body> {
    let lineage = state.tree.lineage(state.id, point.conversation, point.at);
    let when = "have ended since the point that this conversation continues from";
    told_of(when, state.tasks.ended_since(&lineage.segments))
}

fn told_of<'a>(when: &str, ended: impl Iterator<Item = &'a EndedTask>) -> Option<Body> {
    let ended = ended.map(|ended| {
        let how = match ended.exit {
            TaskExit::Code { code } => format!("exit code {code}"),
            TaskExit::Signal { signal } => format!("signal {signal}"),
            TaskExit::NotStarted => "never started".to_owned(),
            TaskExit::Unknown => "outcome unknown".to_owned(),
        };
        format!("{} ({}: {how})", ended.task, ended.tool)
    });
    let ended: Vec<String> = ended.collect();
    let cause = NoticeCause::TaskEnded;
    let text = format!(
        "These background tasks {when}: {}. task_output still returns their output.",
        ended.join(", ")
    );
    (!ended.is_empty()).then(|| Notice { cause, text }.into())
}

#[cfg(test)]
mod tests;
