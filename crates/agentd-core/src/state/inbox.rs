//! Accepted prompts that are not in a turn: queued, or set aside with a conversation.

use super::AgentState;
use crate::event::{Event, PromptMode, PromptQueued, PromptsTaken};
use crate::id::{ConversationId, PromptId, Seq};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How many idempotency keys are remembered. An older one counts as new.
const KEYS_KEPT: usize = 4096;

/// How many removed prompts are remembered.
const REMOVED_KEPT: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    pub prompt: PromptId,
    pub mode: PromptMode,
    pub at: Timestamp,
    /// The event that accepted it.
    pub seq: Seq,
    /// The conversation in which its text is recorded.
    pub conversation: ConversationId,
    /// How often the user has changed its text.
    #[serde(default)]
    pub edits: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbox {
    queue: VecDeque<Queued>,
    aside: Vec<Queued>,
    keys: VecDeque<(String, PromptId, Seq)>,
    /// The newest prompts that the user removed. A runtime that has not learned of it yet may still record that it
    /// takes one: then it takes nothing.
    #[serde(default)]
    removed: VecDeque<PromptId>,
}

impl Inbox {
    /// The queued prompts, in the order in which they will be taken.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &Queued> {
        self.queue.iter()
    }

    pub fn set_aside_prompts(&self) -> impl ExactSizeIterator<Item = &Queued> {
        self.aside.iter()
    }

    /// The queued prompt with this id.
    pub fn get(&self, prompt: PromptId) -> Option<&Queued> {
        self.queue.iter().find(|queued| queued.prompt == prompt)
    }

    /// Whether the user removed it.
    fn is_removed(&self, prompt: PromptId) -> bool {
        self.removed.contains(&prompt)
    }

    /// The prompt that was accepted under this key, and its position.
    pub fn by_key(&self, key: &str) -> Option<(PromptId, Seq)> {
        let mut keys = self.keys.iter().rev();
        keys.find_map(|(known, prompt, seq)| (known == key).then_some((*prompt, *seq)))
    }

    /// The key under which this prompt was accepted.
    pub fn key_of(&self, prompt: PromptId) -> Option<&str> {
        let mut keys = self.keys.iter().rev();
        keys.find_map(|(key, known, _)| (*known == prompt).then_some(key.as_str()))
    }

    pub(super) fn queue(&mut self, event: &Event, body: &PromptQueued) {
        let mut known = self.queue.iter().chain(&self.aside);
        let known = known.find(|known| known.prompt == body.prompt);
        let queued = Queued {
            edits: known.map_or(0, |known| known.edits),
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

    /// Takes prompts from the queue. Returns false if one of them was never queued.
    pub(super) fn take(&mut self, prompts: &[PromptId]) -> bool {
        let before = self.queue.len();
        self.queue.retain(|known| !prompts.contains(&known.prompt));
        let removed = prompts.iter().filter(|prompt| self.is_removed(**prompt));
        before - self.queue.len() + removed.count() == prompts.len()
    }

    pub(super) fn edit(&mut self, prompt: PromptId) -> bool {
        let known = self.queue.iter_mut().find(|known| known.prompt == prompt);
        let is_known = known.is_some();
        if let Some(known) = known {
            known.edits = known.edits.saturating_add(1);
        }
        is_known
    }

    /// Moves a prompt in front of another one, or to the end of the queue.
    pub(super) fn move_prompt(&mut self, prompt: PromptId, before: Option<PromptId>) -> bool {
        let at = |queue: &VecDeque<Queued>, prompt| {
            queue
                .iter()
                .position(|known: &Queued| known.prompt == prompt)
        };
        if before.is_some_and(|before| before == prompt || at(&self.queue, before).is_none()) {
            return false;
        }
        let from = at(&self.queue, prompt);
        let Some(queued) = from.and_then(|from| self.queue.remove(from)) else {
            return false;
        };
        let to = before.and_then(|before| at(&self.queue, before));
        self.queue.insert(to.unwrap_or(self.queue.len()), queued);
        true
    }

    pub(super) fn remove(&mut self, prompts: &[PromptId]) -> bool {
        let all_known = self.take(prompts);
        self.removed.extend(prompts);
        while self.removed.len() > REMOVED_KEPT.max(prompts.len()) {
            self.removed.pop_front();
        }
        all_known
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

impl AgentState {
    /// The turn takes the prompts that are still queued.
    pub(super) fn take_prompts(&mut self, body: &PromptsTaken) -> bool {
        let taken = body.prompts.iter().copied();
        let taken = taken.filter(|prompt| self.inbox.get(*prompt).is_some());
        if let Some(turn) = &mut self.turn {
            turn.prompts.extend(taken);
        }
        self.inbox.take(&body.prompts)
    }
}
