//! An agent's subagents, and the report that it owes if it is a subagent itself.

use super::AgentState;
use crate::event::{
    Event, SubagentEnded, SubagentOf, SubagentOutcome, SubagentStarted, TurnStatus,
};
use crate::id::{AgentId, CallId, ConversationId, PromptId, TurnId};
use crate::spec::Budget;
use crate::time::Timestamp;
use crate::usage::Spent;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many ended subagents are listed. Of older ones only their spending is known.
const KEPT: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    pub name: String,
    pub kind: Option<String>,
    pub call: CallId,
    pub turn: Option<TurnId>,
    pub conversation: ConversationId,
    pub background: bool,
    pub started_at: Timestamp,
    pub lease: Budget,
    /// `None` while it is running.
    pub ended: Option<EndedChild>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedChild {
    pub outcome: SubagentOutcome,
    pub at: Timestamp,
    /// The prompt that tells the agent.
    #[serde(default)]
    pub report: Option<PromptId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Children {
    known: BTreeMap<AgentId, Child>,
    started: u64,
    /// By the subagents that have ended.
    spent: Spent,
}

impl Children {
    pub fn iter(&self) -> impl Iterator<Item = (&AgentId, &Child)> {
        self.known.iter()
    }

    pub fn running(&self) -> impl Iterator<Item = (&AgentId, &Child)> {
        self.known.iter().filter(|(_, child)| child.ended.is_none())
    }

    pub fn get(&self, agent: AgentId) -> Option<&Child> {
        self.known.get(&agent)
    }

    /// The subagent that a call in a turn started.
    pub fn of_call(&self, turn: TurnId, call: &CallId) -> Option<(AgentId, &Child)> {
        let mut known = self.known.iter();
        let is_it = |child: &Child| child.turn == Some(turn) && child.call == *call;
        known
            .find(|(_, child)| is_it(child))
            .map(|(agent, child)| (*agent, child))
    }

    /// How many have been started.
    pub const fn started(&self) -> u64 {
        self.started
    }

    /// What they have spent, plus what the running ones may spend.
    pub fn committed(&self) -> Spent {
        let mut committed = self.spent;
        for (_, child) in self.running() {
            let usage = &mut committed.usage;
            let tokens = child.lease.tokens.unwrap_or(0);
            usage.input_tokens = usage.input_tokens.saturating_add(tokens);
            let usd = child.lease.usd.unwrap_or_default();
            committed.cost = committed.cost.saturating_add(usd);
        }
        committed
    }

    pub(super) fn start(&mut self, event: &Event, body: &SubagentStarted) -> bool {
        self.started = self.started.saturating_add(1);
        let child = Child {
            name: body.name.clone(),
            kind: body.kind.clone(),
            call: body.call.clone(),
            turn: event.turn,
            conversation: event.conversation,
            background: body.background,
            started_at: event.at,
            lease: body.lease,
            ended: None,
        };
        self.known.insert(body.agent, child).is_none()
    }

    pub(super) fn end(&mut self, event: &Event, body: &SubagentEnded) -> bool {
        let Some(child) = self.known.get_mut(&body.agent) else {
            return false;
        };
        if child.ended.is_some() {
            return false;
        }
        child.ended = Some(EndedChild {
            outcome: body.outcome,
            at: event.at,
            report: body.prompt,
        });
        self.spent.merge(&body.spent);
        self.forget_the_oldest();
        true
    }

    /// Whether the prompt is the report of a subagent.
    pub fn is_report(&self, prompt: PromptId) -> bool {
        let mut ended = self.known.values().filter_map(|child| child.ended.as_ref());
        ended.any(|ended| ended.report == Some(prompt))
    }

    /// Subagents of another installation are not its subagents here. Their spending still counts.
    pub(super) fn sever(&mut self) {
        self.known.clear();
    }

    fn forget_the_oldest(&mut self) {
        let over = self.known.iter().filter(|(_, child)| child.ended.is_some());
        let over: Vec<AgentId> = over.map(|(agent, _)| *agent).collect();
        for agent in over.iter().take(over.len().saturating_sub(KEPT)) {
            self.known.remove(agent);
        }
    }
}

/// Why a subagent was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentLink {
    pub parent: AgentId,
    pub call: CallId,
    pub prompt: PromptId,
    pub background: bool,
    /// `None` while it is in progress.
    pub outcome: Option<SubagentOutcome>,
    /// The parent's journal has the outcome.
    pub told: bool,
}

impl AgentState {
    /// Whether it has ended and the parent has not received its report.
    pub fn owes_report(&self) -> bool {
        let parent_link = self.parent_link.as_ref();
        parent_link.is_some_and(|parent_link| parent_link.outcome.is_some() && !parent_link.told)
    }

    /// What it and all its descendants have spent, or have reserved.
    pub fn subtree_spent(&self) -> Spent {
        let mut spent = self.spending.lifetime;
        spent.merge(&self.children.committed());
        let turn = self.turn.as_ref();
        if let Some(in_flight) = turn.and_then(|turn| turn.in_flight) {
            let grant = in_flight.grant;
            let usage = &mut spent.usage;
            usage.input_tokens = usage.input_tokens.saturating_add(grant.input_tokens);
            usage.output_tokens = usage.output_tokens.saturating_add(grant.output_tokens);
            let cost = grant.cost.unwrap_or_default();
            spent.cost = spent.cost.saturating_add(cost);
        }
        spent
    }

    pub(super) fn begin_parent_link(&mut self, body: &SubagentOf) -> bool {
        let parent_link = ParentLink {
            parent: body.parent,
            call: body.call.clone(),
            prompt: body.prompt,
            background: body.background,
            outcome: None,
            told: false,
        };
        self.parent_link.replace(parent_link).is_none()
    }

    pub(super) fn report_made(&mut self) -> bool {
        let parent_link = self.parent_link.as_mut();
        parent_link
            .map(|parent_link| parent_link.told = true)
            .is_some()
    }

    /// The first outcome counts.
    pub(super) fn end_parent_link(&mut self, outcome: SubagentOutcome) {
        if let Some(parent_link) = &mut self.parent_link {
            parent_link.outcome.get_or_insert(outcome);
        }
    }

    /// A turn that contained these prompts has ended.
    pub(super) fn parent_link_answered(&mut self, prompts: &[PromptId], status: TurnStatus) {
        let is_it = |prompt: PromptId| prompts.contains(&prompt);
        if !self.parent_link.as_ref().is_some_and(|it| is_it(it.prompt)) {
            return;
        }
        let is_reset = self.ends_turn() && self.resets.under_way().is_some();
        self.end_parent_link(match status {
            TurnStatus::Interrupted if is_reset => SubagentOutcome::Reset,
            TurnStatus::Completed => SubagentOutcome::Completed,
            TurnStatus::Interrupted => SubagentOutcome::Interrupted,
            TurnStatus::Failed => SubagentOutcome::Failed,
            TurnStatus::Limited => SubagentOutcome::Limited,
            TurnStatus::Lost => SubagentOutcome::Lost,
        });
    }

    /// It was stopped. If its turn has not begun, no end of a turn will follow.
    pub(super) fn parent_link_stopped(&mut self) {
        let prompt = self
            .parent_link
            .as_ref()
            .map(|parent_link| parent_link.prompt);
        let is_it = |queued: &super::Queued| Some(queued.prompt) == prompt;
        if self.inbox.waiting().any(is_it) {
            self.end_parent_link(SubagentOutcome::Interrupted);
        }
    }

    /// A hook refused prompts, or the user removed them.
    pub(super) fn parent_link_blocked(&mut self, prompts: &[PromptId]) {
        let parent_link = self.parent_link.as_ref();
        if parent_link.is_some_and(|parent_link| prompts.contains(&parent_link.prompt)) {
            self.end_parent_link(SubagentOutcome::Failed);
        }
    }

    /// Whether the running turn is the one that the parent waits for.
    pub fn is_working_for_parent(&self) -> bool {
        let turn = self.turn.as_ref();
        let is_it = |parent_link: &ParentLink| {
            let is_under_way = parent_link.outcome.is_none();
            is_under_way && turn.is_some_and(|turn| turn.prompts.contains(&parent_link.prompt))
        };
        self.parent_link.as_ref().is_some_and(is_it)
    }

    /// Prompts were set aside with a sealed conversation.
    pub(super) fn parent_link_set_aside(&mut self, prompts: &[PromptId]) {
        let parent_link = self.parent_link.as_ref();
        if parent_link.is_some_and(|parent_link| prompts.contains(&parent_link.prompt)) {
            self.end_parent_link(SubagentOutcome::Reset);
        }
    }
}
