//! Accepted prompts that are not in a turn: queued, or set aside with a conversation.

use crate::event::{Event, PromptMode, PromptQueued};
use crate::id::{ConversationId, PromptId, Seq};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How many idempotency keys are remembered. An older one counts as new.
const KEYS_KEPT: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    pub prompt: PromptId,
    pub mode: PromptMode,
    pub at: Timestamp,
    /// The event that accepted it.
    pub seq: Seq,
    /// The conversation in which its text is recorded.
    pub conversation: ConversationId,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbox {
    queue: VecDeque<Queued>,
    aside: Vec<Queued>,
    keys: VecDeque<(String, PromptId, Seq)>,
}

impl Inbox {
    /// The queued prompts, in the order in which they will be taken.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &Queued> {
        self.queue.iter()
    }

    pub fn set_aside_prompts(&self) -> impl ExactSizeIterator<Item = &Queued> {
        self.aside.iter()
    }

    /// The prompt that was accepted under this key, and its position.
    pub fn by_key(&self, key: &str) -> Option<(PromptId, Seq)> {
        let mut keys = self.keys.iter().rev();
        keys.find_map(|(known, prompt, seq)| (known == key).then_some((*prompt, *seq)))
    }

    pub(super) fn queue(&mut self, event: &Event, body: &PromptQueued) {
        let queued = Queued {
            prompt: body.prompt,
            mode: body.mode,
            at: event.at,
            seq: event.seq,
            conversation: event.conversation,
        };
        // The same prompt, moved to a new conversation. Its text is recorded there now.
        self.aside.retain(|known| known.prompt != body.prompt);
        match self.queue.iter_mut().find(|q| q.prompt == body.prompt) {
            Some(known) => *known = queued,
            None if body.mode == PromptMode::Interrupt => self.queue.push_front(queued),
            None => self.queue.push_back(queued),
        }
        if let Some(key) = &body.key {
            self.keys.push_back((key.clone(), body.prompt, event.seq));
            while self.keys.len() > KEYS_KEPT {
                self.keys.pop_front();
            }
        }
    }

    pub(super) fn take(&mut self, prompts: &[PromptId]) -> bool {
        let before = self.queue.len();
        self.queue.retain(|known| !prompts.contains(&known.prompt));
        before - self.queue.len() == prompts.len()
    }

    pub(super) fn set_aside(&mut self, prompts: &[PromptId]) -> bool {
        let (aside, kept): (Vec<_>, Vec<_>) = self
            .queue
            .drain(..)
            .partition(|known| prompts.contains(&known.prompt));
        self.queue = kept.into();
        let all_known = aside.len() == prompts.len();
        self.aside.extend(aside);
        all_known
    }

    pub(super) fn requeue(&mut self, prompts: &[PromptId]) -> bool {
        let (back, kept): (Vec<_>, Vec<_>) = self
            .aside
            .drain(..)
            .partition(|known| prompts.contains(&known.prompt));
        self.aside = kept;
        let all_known = back.len() == prompts.len();
        self.queue.extend(back);
        all_known
    }

    /// No prompt that was accepted before that event is ever taken, not even after an undo.
    pub(super) fn drop_before(&mut self, seq: Seq) {
        self.queue.retain(|known| known.seq > seq);
        self.aside.retain(|known| known.seq > seq);
    }

    /// The content of a conversation was purged, including its prompts.
    pub(super) fn forget(&mut self, conversation: ConversationId) {
        self.aside
            .retain(|known| known.conversation != conversation);
        self.queue
            .retain(|known| known.conversation != conversation);
    }
}
