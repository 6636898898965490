//! What the chat has to know about the agent beside its events, and when it asks for it again.

use super::{App, Focus};
use crate::chat::effect::Effect;
use agentd_core::event::Kind;
use agentd_core::time::Timestamp;

/// How often tasks, and the approvals that subagents wait for, are looked at.
const LOOK_MS: u64 = 1000;

#[derive(Clone, Copy, Default)]
pub struct Want {
    is_stale: bool,
    is_asked: bool,
}

impl Want {
    const STALE: Self = Self {
        is_stale: true,
        is_asked: false,
    };

    pub const fn again(&mut self) {
        self.is_stale = true;
    }

    pub const fn answered(&mut self) {
        self.is_asked = false;
    }

    /// Whether a request is due. Only one is sent at a time.
    const fn is_due(&mut self) -> bool {
        let is_due = self.is_stale && !self.is_asked;
        if is_due {
            self.is_stale = false;
            self.is_asked = true;
        }
        is_due
    }
}

pub struct Wanted {
    pub agent: Want,
    pub spec: Want,
    pub queue: Want,
    pub tasks: Want,
    pub output: Want,
    looked: Timestamp,
}

impl Wanted {
    pub const fn all() -> Self {
        Self {
            agent: Want::STALE,
            spec: Want::STALE,
            queue: Want::STALE,
            tasks: Want::STALE,
            output: Want {
                is_stale: false,
                is_asked: false,
            },
            looked: Timestamp::from_millis(0),
        }
    }

    /// What an event of this kind changes.
    pub const fn after(&mut self, kind: Kind) {
        match kind {
            Kind::PromptQueued
            | Kind::PromptsTaken
            | Kind::PromptsSetAside
            | Kind::PromptsRequeued
            | Kind::PromptEdited
            | Kind::PromptMoved
            | Kind::PromptsRemoved => self.queue.again(),
            Kind::SpecSet => {
                self.spec.again();
                self.agent.again();
            }
            Kind::TaskStarted | Kind::TaskEnded => self.tasks.again(),
            Kind::TurnStarted
            | Kind::TurnPaused
            | Kind::TurnContinued
            | Kind::TurnEnded
            | Kind::ApprovalRequested
            | Kind::ApprovalAnswered
            | Kind::ApprovalWithdrawn
            | Kind::AgentStarted
            | Kind::AgentStopped
            | Kind::AgentFailed
            | Kind::AgentRenamed
            | Kind::AgentReleased
            | Kind::AgentArchived
            | Kind::AgentRestored
            | Kind::ResetBegan
            | Kind::ResetEnded
            | Kind::ResetWithdrawn
            | Kind::ConversationBegan
            | Kind::PointerMoved
            | Kind::PlanSet
            | Kind::SubagentStarted
            | Kind::SubagentEnded => self.agent.again(),
            _ => {}
        }
    }
}

impl App {
    /// Asks for what is needed and not known.
    pub fn ask(&mut self) {
        self.look();
        let wanted = &mut self.wanted;
        let due = [
            (wanted.agent.is_due(), Effect::LoadAgent),
            (wanted.spec.is_due(), Effect::LoadSpec),
            (wanted.queue.is_due(), Effect::LoadQueue),
            (wanted.tasks.is_due(), Effect::LoadTasks),
        ];
        let due = due.into_iter().filter(|(is_due, _)| *is_due);
        self.effects.extend(due.map(|(_, effect)| effect));
        if let Some(load) = self.side.load()
            && self.wanted.output.is_due()
        {
            self.effects.push(load);
        }
        self.ask_for_older();
    }

    /// What changes without an event of this agent is looked at now and then.
    fn look(&mut self) {
        if self.now.since(self.wanted.looked) < LOOK_MS {
            return;
        }
        let has_workers = self.agent.children.iter().any(|it| it.outcome.is_none());
        if self.has_side || self.side.running() > 0 {
            self.wanted.tasks.again();
        }
        // A limit of the home may hold the next turn back.
        let is_due = !self.queue.is_empty() && self.agent.turn.is_none();
        if has_workers || is_due {
            self.wanted.agent.again();
        }
        if self.has_side {
            self.wanted.output.again();
        }
        self.wanted.looked = self.now;
    }

    fn ask_for_older(&mut self) {
        let height = usize::from(self.layout.history.height);
        let Some(oldest) = self.scrollback.oldest() else {
            return;
        };
        if self.loads_older || height == 0 || self.is_lost {
            return;
        }
        let search = self.composer.search.as_ref();
        let searches = search.is_some_and(|it| !it.words.is_empty() && it.found.is_none());
        let is_covered = matches!(self.focus, Focus::Pager(_) | Focus::Picker(_));
        let is_near = !is_covered && self.scrollback.is_near_top(height);
        if is_near || self.goes_to_top || searches {
            self.loads_older = true;
            self.effects.push(Effect::LoadOlder(oldest));
        }
    }
}
