//! Which turns answer the prompts that a destination is interested in. A small fold over structural events, which is
//! stored together with the destination's cursor.

use crate::event::{Body, Event, PromptRouted, TurnStatus};
use crate::id::{AgentId, PromptId, TurnId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

type PromptsByAgent = BTreeMap<AgentId, BTreeSet<PromptId>>;

/// The prompts that were not answered yet, and the turns that answer them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Routed {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    prompts: PromptsByAgent,
    /// Those that a reset set aside with their conversation: an undo puts them back.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    aside: PromptsByAgent,
    /// The turn in progress, if it answers one of them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    turns: BTreeMap<AgentId, TurnId>,
    /// The prompts that this turn answers, also after it reached a limit.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    answered: PromptsByAgent,
    /// Turns that reached a limit: another turn may continue them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    limited: BTreeMap<AgentId, TurnId>,
}

/// Whether an event belongs to a turn that answers one of the prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Ours,
    Other,
}

impl Routed {
    /// Folds one more event. `is_ours` selects the prompts.
    pub fn apply(&mut self, event: &Event, is_ours: impl Fn(&PromptRouted) -> bool) -> Part {
        let agent = event.agent;
        match &event.body {
            Body::PromptRouted(body) if is_ours(body) => {
                self.prompts.entry(agent).or_default().insert(body.prompt);
            }
            Body::PromptsTaken(body) => self.take(event, &body.prompts),
            Body::PromptBlocked(body) => self.take(event, &[body.prompt]),
            Body::PromptsRemoved(body) => {
                take_from(&mut self.prompts, agent, &body.prompts);
            }
            Body::PromptsSetAside(body) => {
                let ours = take_from(&mut self.prompts, agent, &body.prompts);
                add_to(&mut self.aside, agent, ours);
            }
            Body::PromptsRequeued(body) => {
                let ours = take_from(&mut self.aside, agent, &body.prompts);
                add_to(&mut self.prompts, agent, ours);
            }
            Body::TurnStarted(body) => {
                let resumed = self.limited.remove(&agent);
                if let Some(turn) = event.turn
                    && body.resumes.is_some()
                    && body.resumes == resumed
                {
                    self.turns.insert(agent, turn);
                } else {
                    self.answered.remove(&agent);
                }
            }
            _ => {}
        }
        let part = match self.turns.get(&agent) {
            Some(turn) if event.turn == Some(*turn) => Part::Ours,
            _ => Part::Other,
        };
        if let Body::TurnEnded(body) = &event.body
            && part == Part::Ours
        {
            let turn = self.turns.remove(&agent);
            match (body.status, turn) {
                (TurnStatus::Limited, Some(turn)) => {
                    self.limited.insert(agent, turn);
                }
                _ => {
                    self.answered.remove(&agent);
                }
            }
        }
        part
    }

    /// Which of the prompts that an event removes from the queue are ours.
    pub fn waiting_among(&self, event: &Event) -> Vec<PromptId> {
        let removed = match &event.body {
            Body::PromptsRemoved(body) => &body.prompts,
            Body::PromptsSetAside(body) => &body.prompts,
            _ => return Vec::new(),
        };
        let Some(ours) = self.prompts.get(&event.agent) else {
            return Vec::new();
        };
        let removed = removed.iter().filter(|prompt| ours.contains(prompt));
        removed.copied().collect()
    }

    /// The prompts that the turn in progress answers, if it answers ours.
    pub fn answered(&self, agent: AgentId) -> Vec<PromptId> {
        let prompts = self.answered.get(&agent).into_iter().flatten();
        prompts.copied().collect()
    }

    /// The prompts that no turn has taken yet.
    pub fn waiting(&self, agent: AgentId) -> Vec<PromptId> {
        let prompts = self.prompts.get(&agent).into_iter().flatten();
        prompts.copied().collect()
    }

    /// Whether a prompt waits, or the turn in progress answers one.
    pub fn is_open(&self, agent: AgentId) -> bool {
        self.prompts.contains_key(&agent) || self.turns.contains_key(&agent)
    }

    fn take(&mut self, event: &Event, prompts: &[PromptId]) {
        let ours = take_from(&mut self.prompts, event.agent, prompts);
        if !ours.is_empty()
            && let Some(turn) = event.turn
        {
            self.turns.insert(event.agent, turn);
            add_to(&mut self.answered, event.agent, ours);
        }
    }
}

/// Removes prompts, and returns those that were there.
fn take_from(all: &mut PromptsByAgent, agent: AgentId, prompts: &[PromptId]) -> Vec<PromptId> {
    let Some(known) = all.get_mut(&agent) else {
        return Vec::new();
    };
    let taken = prompts.iter().filter(|prompt| known.remove(*prompt));
    let taken = taken.copied().collect();
    if known.is_empty() {
        all.remove(&agent);
    }
    taken
}

fn add_to(all: &mut PromptsByAgent, agent: AgentId, prompts: Vec<PromptId>) {
    if !prompts.is_empty() {
        all.entry(agent).or_default().extend(prompts);
    }
}
