//! Prompts that are waiting or running, and the fields that their senders want back.

use agentd_core::attachment::Refused;
use agentd_core::event::{Body, Prompt, PromptMode, PromptQueued};
use agentd_core::frame::PromptFrame;
use agentd_core::id::PromptId;
use agentd_core::message::Wire;
use agentd_core::request::check_attachments;
use agentd_core::state::{AgentState, Inbox};
use agentd_core::window::Window;
use agentd_daemon::clock;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// The fields that a prompt's sender gets back with the answer.
#[derive(Default)]
pub struct Asked {
    pub turn_id: Option<String>,
    pub metadata: Option<Map<String, Value>>,
}

/// Why a prompt is rejected.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    #[error("the prompt `{0}` was already accepted; it does not run again")]
    Repeated(String),
    #[error(
        "{0} prompts are already queued (limits.max_queue); send it again when some are answered"
    )]
    QueueFull(usize),
    #[error("{0}; {next}", next = .0.next())]
    Unfit(Refused),
}

pub struct Asking {
    /// The prompts that were accepted before this process started.
    before: Inbox,
    keys: HashSet<String>,
    waiting: HashMap<PromptId, Asked>,
    /// The prompts of the running turn.
    answering: Vec<Asked>,
    max_queue: usize,
    usual_mode: PromptMode,
    /// The provider's format, which limits what may be attached.
    wire: Wire,
}

impl Asking {
    /// Prompts that an earlier process accepted keep their ids: their results must not be taken for those of later ones.
    pub fn new(state: &AgentState, usual_mode: PromptMode, wire: Wire) -> Self {
        let asked = |prompt: PromptId| Asked {
            turn_id: state.inbox.key_of(prompt).map(str::to_owned),
            metadata: None,
        };
        let waiting = state.inbox.waiting().map(|queued| queued.prompt);
        let running = state.turn.iter().flat_map(|turn| turn.prompts.iter());
        Self {
            before: state.inbox.clone(),
            keys: HashSet::new(),
            waiting: waiting.map(|prompt| (prompt, asked(prompt))).collect(),
            answering: running.map(|prompt| asked(*prompt)).collect(),
            max_queue: state.spec.limits.max_queue as usize,
            usual_mode,
            wire,
        }
    }

    /// The events to append for a prompt.
    pub fn take(&mut self, frame: PromptFrame) -> Result<Vec<Body>, NotTaken> {
        if let Some(key) = &frame.turn_id
            && (self.before.by_key(key).is_some() || self.keys.contains(key))
        {
            return Err(NotTaken::Repeated(key.clone()));
        }
        if self.waiting.len() >= self.max_queue {
            return Err(NotTaken::QueueFull(self.waiting.len()));
        }
        // The limits for all files of the conversation are the request's matter.
        check_attachments(&Window::new(), self.wire, &frame.blocks)
            .map_err(|(name, why)| NotTaken::Unfit(Refused::Unfit { name, why }))?;
        self.keys.extend(frame.turn_id.clone());
        let prompt = PromptId::new(clock::new_id());
        let asked = Asked {
            turn_id: frame.turn_id.clone(),
            metadata: frame.metadata,
        };
        self.waiting.insert(prompt, asked);
        let queued = PromptQueued {
            prompt,
            key: frame.turn_id,
            mode: frame.mode.unwrap_or(self.usual_mode),
        };
        let blocks = frame.blocks;
        Ok(vec![queued.into(), Prompt { prompt, blocks }.into()])
    }

    /// Marks these prompts as part of the running turn.
    pub fn taken(&mut self, prompts: &[PromptId]) {
        let asked = prompts.iter();
        let asked = asked.filter_map(|prompt| self.waiting.remove(prompt));
        self.answering.extend(asked);
    }

    /// The sender's id of the running turn.
    pub fn turn_id(&self) -> Option<String> {
        let mut asked = self.answering.iter();
        asked.find_map(|asked| asked.turn_id.clone())
    }

    /// Ends the turn, and returns the fields that go back with its result.
    pub fn answered(&mut self) -> Asked {
        let mut back = Asked::default();
        for asked in self.answering.drain(..) {
            back.turn_id = back.turn_id.or(asked.turn_id);
            back.metadata = back.metadata.or(asked.metadata);
        }
        back
    }
}
