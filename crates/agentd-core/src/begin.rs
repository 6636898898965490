//! One primitive: a conversation begins, from nothing or from a point of another. Create, reset, rewind
//! and fork are that; undo and redo make one that has begun before the current one again.
//!
//! Each function says what to append, in one go: it happens whole or not at all.

use crate::branch_point::BranchPoint;
use crate::event::{
    AgentCreated, AgentHeld, BeginSource, Body, CheckpointSet, ConversationBegan,
    ConversationSealed, Direction, HoldReason, Mode, Notice, NoticeCause, Origin, PointerMoved,
    Prompt, PromptQueued, PromptsRequeued, PromptsSetAside, SealReason, SpecSet, TaskExit,
};
use crate::id::{ConversationId, OpId, PromptId, Seq};
use crate::recover::{close_branch, open_fork};
use crate::spec::AgentSpec;
use crate::state::{AgentState, Conversation, EndedTask, Queued};
use crate::window::Window;

/// The label on the first position of every conversation.
pub const INIT: &str = "init";

/// An event, and the conversation it belongs to.
pub type Line = (ConversationId, Body);

/// Why no conversation begins.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("a turn is under way; it must end first")]
    TurnUnderWay,
    #[error("the agent has no conversation yet")]
    NoConversation,
    #[error("reset is only for persistent agents")]
    Oneshot,
    #[error("there is nothing to undo")]
    NothingToUndo,
    #[error("there is nothing to redo")]
    NothingToRedo,
    #[error("the words of conversation {0} were purged; nothing can begin from them")]
    Purged(ConversationId),
    #[error("another reset is under way: {0}")]
    Resetting(Box<OpId>),
    #[error("the op `{0}` was used for another change")]
    OtherOp(Box<OpId>),
    #[error("event {0} is not in that conversation")]
    NotThere(Seq),
    #[error("the agent has no conversation {0}")]
    NoSuchConversation(ConversationId),
}

/// What becomes of prompts that wait when a conversation is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// They stay with the conversation, and come back with it.
    SetAside,
    /// They go along to the new one.
    Keep,
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

/// Makes the conversation that undo or redo leads to the current one.
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

/// Begins a conversation from a place of this agent's; `seen` is what the model saw up to there.
pub fn rewind(
    state: &AgentState,
    window: &Window,
    seen: &Window,
    place: BranchPoint,
    new: ConversationId,
    queue: Queue,
    op: Option<OpId>,
) -> Result<Vec<Line>, Refused> {
    let old = leavable(state)?;
    let from = origin(state, place)?;
    let (aside, along) = sorted(state, queue);
    let mut lines: Vec<Line> = set_aside(old.id, aside).into_iter().collect();
    lines.push(seal(old, SealReason::Rewind, op));
    lines.extend(open(new, BeginSource::Rewind, Some(old.id), Some(from), op));
    lines.extend(close_branch(seen).into_iter().map(|body| (new, body)));
    lines.extend(ended_since(state, place).map(|told| (new, told)));
    lines.extend(carried_prompts(window, new, &along));
    lines.extend(carried_tasks(state).map(|told| (new, told)));
    Ok(lines)
}

/// A new agent whose first conversation begins from a place of another agent's; `seen` is what that
/// one's model saw up to there. The other one goes on as if nothing had happened: its tasks, its questions
/// and its queue stay with it, and the new one is told so.
pub fn fork(
    parent: &AgentState,
    seen: &Window,
    place: BranchPoint,
    name: &str,
    new: ConversationId,
    op: Option<OpId>,
) -> Result<Vec<Line>, Refused> {
    let from = origin(parent, place)?;
    let (name, mode) = (name.to_owned(), Mode::Persistent);
    let spec = parent.spec.clone();
    let mut lines = vec![
        (new, AgentCreated { name, mode }.into()),
        (new, SpecSet { spec }.into()),
    ];
    lines.extend(open(new, BeginSource::Fork, None, Some(from), op));
    let told = open_fork(seen, &parent.name);
    lines.extend(told.into_iter().map(|body| (new, body)));
    if parent.is_held() {
        // It has the settings that the user has not seen yet.
        let reason = HoldReason::Forked;
        lines.push((new, AgentHeld { reason }.into()));
    }
    Ok(lines)
}

/// The current conversation, if it can be left.
fn leavable(state: &AgentState) -> Result<&Conversation, Refused> {
    if state.turn.is_some() {
        return Err(Refused::TurnUnderWay);
    }
    let current = state.tree.current_conversation();
    current.ok_or(Refused::NoConversation)
}

/// Where a conversation begins from, if one can.
pub(crate) fn origin(state: &AgentState, place: BranchPoint) -> Result<Origin, Refused> {
    let BranchPoint { conversation, at } = place;
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

/// The prompts that stay with the old conversation, and those that go along to the other one: what was
/// accepted after the reset was asked for was meant for that.
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

/// The same prompts again, with their words, in the conversation that they go along to.
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

/// What the new conversation is told of the tasks and subagents that go on.
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
            "These background tasks were started in an earlier conversation and go on: {}.",
            tasks.join(", ")
        ));
    }
    if !subagents.is_empty() {
        parts.push(format!(
            "These subagents were started in an earlier conversation and go on in the background; their \
             answers come as messages: {}.",
            subagents.join(", ")
        ));
    }
    let cause = NoticeCause::TasksCarried;
    let text = parts.join(" ");
    (!parts.is_empty()).then(|| Notice { cause, text }.into())
}

/// What a conversation that becomes the current one again is told of the tasks that it knows and that
/// have ended meanwhile.
fn ended_tasks(state: &AgentState, to: ConversationId) -> Option<Body> {
    let when = "ended while another conversation was the current one";
    told_of(when, state.tasks.untold(to).iter())
}

/// What a branch is told of the tasks that ran where it begins, and have ended since.
fn ended_since(state: &AgentState, place: BranchPoint) -> Option<Body> {
    let lineage = state.tree.lineage(state.id, place.conversation, place.at);
    let when = "have ended since the place that this conversation goes on from";
    told_of(when, state.tasks.ended_since(&lineage.segments))
}

fn told_of<'a>(when: &str, ended: impl Iterator<Item = &'a EndedTask>) -> Option<Body> {
    let ended = ended.map(|ended| {
        let how = match ended.exit {
            TaskExit::Code { code } => format!("exit code {code}"),
            TaskExit::Signal { signal } => format!("signal {signal}"),
            TaskExit::NotStarted => "never started".to_owned(),
            TaskExit::Unknown => "nobody saw how".to_owned(),
        };
        format!("{} ({}: {how})", ended.task, ended.tool)
    });
    let ended: Vec<String> = ended.collect();
    let cause = NoticeCause::TaskEnded;
    let text = format!(
        "These background tasks {when}: {}. task_output still shows what they wrote.",
        ended.join(", ")
    );
    (!ended.is_empty()).then(|| Notice { cause, text }.into())
}

#[cfg(test)]
mod tests;
