//! Subagents: which ones an agent may start, their settings and budgets, and how their end is reported.
//!
//! The budget of a subagent is reserved from what its parent has left, in the parent's journal, before the subagent
//! exists. So two subagents can never spend the same dollar, and no agent has to read another agent's journal before
//! a request.

use crate::begin::{self, Line};
use crate::event::{
    Body, Mode, Notice, NoticeCause, Prompt, PromptMode, PromptQueued, SubagentEnded, SubagentOf,
    SubagentOutcome, SubagentStarted,
};
use crate::id::{AgentId, CallId, ConversationId, PromptId};
use crate::message::Block;
use crate::spec::{AgentSpec, Budget, Subagent};
use crate::state::{AgentState, Child};
use crate::usage::{MicroUsd, Spent};
use std::collections::BTreeMap;

/// The tool that starts a subagent.
pub const TOOL: &str = "agent";

/// The maximum length of a name.
const LONGEST_NAME: usize = 64;

/// Why a subagent is not started, as text for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("this agent may not start subagents (`limits.max_depth`)")]
    TooDeep,
    #[error(
        "{limit} subagents are running, which is the limit (`limits.max_children`): {names}; wait for \
         one of them to end"
    )]
    TooMany { limit: u32, names: String },
    #[error("unknown kind of subagent `{kind}`; the kinds are: {known}")]
    NoSuchKind { kind: String, known: String },
    #[error("specify the kind of subagent; the kinds are: {known}")]
    NoKind { known: String },
    #[error("the budget of this agent and its subagents is used up (`limits.subtree`)")]
    NothingLeft,
}

/// A subagent that may be started.
#[derive(Clone, Debug, PartialEq)]
pub struct SpawnPlan {
    pub name: String,
    pub spec: AgentSpec,
    pub lease: Budget,
}

/// The kinds of subagents that an agent may start: its own, and those of its project unless it has a kind of that name. A list of
/// tools is a restriction, so an agent with one has only its own kinds: a project must not give it more tools.
pub fn kinds(
    spec: &AgentSpec,
    of_project: BTreeMap<String, Subagent>,
) -> BTreeMap<String, Subagent> {
    let mut kinds = match spec.tools {
        None => of_project,
        Some(_) => BTreeMap::new(),
    };
    kinds.extend(spec.agents.clone());
    kinds
}

/// Whether an agent with these kinds of subagents may start one of this kind, and if so with which settings.
pub fn plan_spawn(
    state: &AgentState,
    kinds: &BTreeMap<String, Subagent>,
    kind: Option<&str>,
) -> Result<SpawnPlan, Refused> {
    let limits = &state.spec.limits;
    if limits.max_depth == 0 {
        return Err(Refused::TooDeep);
    }
    let working: Vec<&str> = state
        .children
        .running()
        .map(|(_, child)| child.name.as_str())
        .collect();
    if working.len() >= limits.max_children as usize {
        return Err(Refused::TooMany {
            limit: limits.max_children,
            names: working.join(", "),
        });
    }
    let (mut spec, wanted) = of_kind(&state.spec, kinds, kind)?;
    let lease = lease(&limits.subtree, &state.subtree_spent(), &wanted)?;
    spec.limits.subtree = lease;
    Ok(SpawnPlan {
        name: name(state),
        spec,
        lease,
    })
}

/// The same plan again, for a subagent that is recorded but does not exist yet.
pub fn again(
    state: &AgentState,
    kinds: &BTreeMap<String, Subagent>,
    child: &Child,
) -> Result<SpawnPlan, Refused> {
    let (mut spec, _) = of_kind(&state.spec, kinds, child.kind.as_deref())?;
    spec.limits.subtree = child.lease;
    Ok(SpawnPlan {
        name: child.name.clone(),
        spec,
        lease: child.lease,
    })
}

/// The spec of a subagent of this kind, and the budget that the kind sets.
fn of_kind(
    parent: &AgentSpec,
    kinds: &BTreeMap<String, Subagent>,
    kind: Option<&str>,
) -> Result<(AgentSpec, Budget), Refused> {
    let names = || {
        let names: Vec<&str> = kinds.keys().map(String::as_str).collect();
        names.join(", ")
    };
    let mut spec = parent.clone();
    let wanted = match kind {
        None if kinds.is_empty() => Budget::default(),
        None => return Err(Refused::NoKind { known: names() }),
        Some(kind) => {
            let known = kinds.get(kind);
            let known = known.ok_or_else(|| Refused::NoSuchKind {
                kind: kind.to_owned(),
                known: names(),
            })?;
            let other_provider = known.provider.is_some();
            spec.description.clone_from(&known.description);
            if other_provider {
                spec.provider.clone_from(&known.provider);
            }
            // The parent's model is not available from another provider.
            if other_provider || known.model.is_some() {
                spec.model.clone_from(&known.model);
            }
            if known.tools.is_some() {
                spec.tools.clone_from(&known.tools);
                // A list of tools is a restriction.
                spec.mcp.clear();
            }
            spec.reasoning = known.reasoning.or(spec.reasoning);
            if let Some(system) = &known.system {
                spec.system.clone_from(system);
            }
            known.budget
        }
    };
    // It has a single task, so it must not reset itself.
    spec.auto_reset = Default::default();
    spec.limits.max_depth = parent.limits.max_depth.saturating_sub(1);
    if spec.limits.max_depth == 0 {
        spec.agents.clear();
        if let Some(tools) = &mut spec.tools {
            tools.retain(|tool| tool != TOOL);
        }
    }
    Ok((spec, wanted))
}

/// The budget to reserve: what the kind sets, or half of what is left, and never more than what is left. Time is not
/// reserved, because agents run concurrently.
fn lease(bound: &Budget, spent: &Spent, wanted: &Budget) -> Result<Budget, Refused> {
    let left = |bound: u64, spent: u64, wanted: Option<u64>| {
        let left = bound.saturating_sub(spent);
        wanted.unwrap_or(left / 2).min(left)
    };
    let tokens = match bound.tokens {
        Some(bound) => Some(left(bound, spent.usage.total(), wanted.tokens)),
        None => wanted.tokens,
    };
    let usd = match bound.usd {
        Some(bound) => {
            let wanted = wanted.usd.map(|usd| usd.0);
            Some(MicroUsd(left(bound.0, spent.cost.0, wanted)))
        }
        None => wanted.usd,
    };
    let wall_ms = match bound.wall_ms {
        Some(bound) => {
            let left = bound.saturating_sub(spent.busy_ms);
            Some(wanted.wall_ms.unwrap_or(left).min(left))
        }
        None => wanted.wall_ms,
    };
    let is_nothing = tokens == Some(0) || usd == Some(MicroUsd(0)) || wall_ms == Some(0);
    match is_nothing {
        true => Err(Refused::NothingLeft),
        false => Ok(Budget {
            tokens,
            usd,
            wall_ms,
        }),
    }
}

/// The name of the next subagent: `coder.1`, `coder.2`, and so on.
fn name(state: &AgentState) -> String {
    let number = format!(".{}", state.children.started().saturating_add(1));
    let room = LONGEST_NAME.saturating_sub(number.len());
    let parent: String = state.name.chars().take(room).collect();
    format!("{parent}{number}")
}

/// What the parent's journal records before the subagent exists.
pub fn started(
    agent: AgentId,
    plan_spawn: &SpawnPlan,
    call: &CallId,
    kind: Option<String>,
    background: bool,
) -> Body {
    SubagentStarted {
        agent,
        name: plan_spawn.name.clone(),
        call: call.clone(),
        kind,
        background,
        lease: plan_spawn.lease,
    }
    .into()
}

/// The beginning of the subagent's own journal, with its task.
pub fn create(
    plan_spawn: &SpawnPlan,
    of: SubagentOf,
    prompt: &str,
    conversation: ConversationId,
) -> Vec<Line> {
    let mut lines = begin::create(
        &plan_spawn.name,
        Mode::Persistent,
        &plan_spawn.spec,
        conversation,
    );
    let bodies = prompted(of.prompt, prompt);
    lines.push((conversation, of.into()));
    lines.extend(bodies.map(|body| (conversation, body)));
    lines
}

fn prompted(prompt: PromptId, text: &str) -> [Body; 2] {
    let blocks = vec![Block::text(text)];
    let queued = PromptQueued {
        prompt,
        key: None,
        mode: PromptMode::Queue,
    };
    [queued.into(), Prompt { prompt, blocks }.into()]
}

/// How a subagent ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub outcome: SubagentOutcome,
    pub spent: Spent,
    /// Its last message.
    pub text: String,
    /// The reason, if it did not succeed.
    pub error: Option<String>,
}

/// What to append to the parent's journal, exactly once; `None` if the end is already recorded. The answer of a
/// background subagent becomes a prompt, which starts a turn of the parent. The answer of a foreground subagent is
/// the result of its call.
pub fn ended(
    parent: &AgentState,
    agent: AgentId,
    report: &Report,
    prompt: PromptId,
) -> Option<Vec<Body>> {
    let child = parent.children.get(agent)?;
    if child.ended.is_some() {
        return None;
    }
    let is_prompted = child.background && !parent.archived && !is_called_off(parent, report);
    let ended = SubagentEnded {
        agent,
        outcome: report.outcome,
        spent: report.spent,
        prompt: is_prompted.then_some(prompt),
    };
    let mut bodies = vec![ended.into()];
    let text = told(&child.name, child.kind.as_deref(), report);
    match (is_prompted, child.background) {
        (true, _) => bodies.extend(prompted(prompt, &text)),
        (false, true) => {
            let cause = NoticeCause::TaskEnded;
            bodies.push(Notice { cause, text }.into());
        }
        (false, false) => {}
    }
    Some(bodies)
}

/// The subagent was stopped together with its parent, so the parent needs no turn about it.
fn is_called_off(parent: &AgentState, report: &Report) -> bool {
    let reset = parent.resets.under_way();
    let is_reset = reset.is_some_and(|reset| reset.order.kill_background);
    report.outcome == SubagentOutcome::Interrupted && (parent.stopped || is_reset)
}

fn told(name: &str, kind: Option<&str>, report: &Report) -> String {
    let kind = kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
    let how = how(report);
    format!("The subagent {name}{kind}, which you started in the background, {how}")
}

/// Such as `has completed its work. Its last message: …`.
pub fn how(report: &Report) -> String {
    let outcome = match report.outcome {
        SubagentOutcome::Completed => "has completed its work",
        SubagentOutcome::Interrupted => "was interrupted",
        SubagentOutcome::Failed => "has failed",
        SubagentOutcome::Limited => "has reached a limit",
        SubagentOutcome::Lost => "was given up after several crashes",
        SubagentOutcome::Reset => "was reset, and no longer knows its task",
        SubagentOutcome::Deleted => "was removed",
    };
    let error = report.error.as_ref();
    let error = error.map(|error| format!(": {error}")).unwrap_or_default();
    match report.text.trim() {
        "" => format!("{outcome}{error}. It returned no text."),
        text => format!("{outcome}{error}. Its last message:\n\n{text}"),
    }
}

/// The spec that limits a subagent without a lease to what it has already spent; `None` if it has no limit.
pub fn closed(state: &AgentState) -> Option<AgentSpec> {
    let bound = state.spec.limits.subtree;
    if bound.is_unlimited() {
        return None;
    }
    let spent = state.subtree_spent();
    let closed = Budget {
        tokens: bound.tokens.map(|_| spent.usage.total()),
        usd: bound.usd.map(|_| spent.cost),
        wall_ms: bound.wall_ms.map(|_| spent.busy_ms),
    };
    let mut spec = (*state.spec).clone();
    spec.limits.subtree = closed;
    (closed != bound).then_some(spec)
}

#[cfg(test)]
mod tests;
