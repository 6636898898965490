//! The tree of conversations, the pointer to the current one, and the undo stack.

use crate::event::{
    BeginSource, CheckpointSet, ConversationBegan, ConversationSealed, Direction, Event, Origin,
    PointerMoved, RequestEnded, SealReason,
};
use crate::id::{AgentId, ConversationId, Seq};
use crate::time::Timestamp;
use crate::usage::Spent;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One context of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    pub id: ConversationId,
    /// 1 for the agent's first, and so on.
    pub ordinal: u32,
    pub parent: Option<ConversationId>,
    pub from: Option<Origin>,
    pub source: BeginSource,
    pub began: Seq,
    pub began_at: Timestamp,
    /// Its last event so far.
    pub head: Seq,
    pub sealed: Option<SealReason>,
    pub turns: u32,
    /// Turns that ended in it, including those that only compacted.
    #[serde(default)]
    pub ended_turns: u32,
    pub compactions: u32,
    /// The number of tokens of the newest answer, including everything that it answered.
    #[serde(default)]
    pub context_tokens: u64,
    pub spent: Spent,
    pub labels: BTreeMap<String, Seq>,
    pub purged: bool,
    pub last_request: Option<String>,
    /// A prompt or a command of the user was given in it.
    #[serde(default)]
    pub is_used: bool,
}

impl Conversation {
    /// Whether it has any message, of its own or of the conversation that it branches from.
    pub const fn has_messages(&self) -> bool {
        let began_empty = matches!(self.source, BeginSource::Create | BeginSource::Reset);
        self.is_used || !began_empty || self.from.is_some()
    }
}

/// Part of a conversation that a window is folded from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub agent: AgentId,
    pub conversation: ConversationId,
    /// The last event that is included.
    pub through: Seq,
}

/// What a window is folded from, oldest first, as far as this agent's journal shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    pub segments: Vec<Segment>,
    /// Where it continues into another agent's journal.
    pub beyond: Option<Origin>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tree {
    conversations: BTreeMap<ConversationId, Conversation>,
    current: Option<ConversationId>,
    generation: u64,
    /// The conversations that undo returns to, newest last.
    undo: Vec<ConversationId>,
    redo: Vec<ConversationId>,
}

impl Tree {
    pub const fn current(&self) -> Option<ConversationId> {
        self.current
    }

    pub fn current_conversation(&self) -> Option<&Conversation> {
        self.conversations.get(&self.current?)
    }

    pub fn get(&self, id: ConversationId) -> Option<&Conversation> {
        self.conversations.get(&id)
    }

    /// All conversations, in the order of their ids (and so of their beginning).
    pub fn iter(&self) -> impl Iterator<Item = &Conversation> {
        self.conversations.values()
    }

    pub fn len(&self) -> usize {
        self.conversations.len()
    }

    pub fn is_empty(&self) -> bool {
        self.conversations.is_empty()
    }

    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// The conversation that an undo would return to.
    pub fn undo_target(&self) -> Option<ConversationId> {
        self.undo.last().copied()
    }

    pub fn redo_target(&self) -> Option<ConversationId> {
        self.redo.last().copied()
    }

    /// The conversations whose content `id` shows up to `through`, oldest first.
    pub fn lineage(&self, agent: AgentId, id: ConversationId, through: Seq) -> Lineage {
        let mut segments = vec![Segment {
            agent,
            conversation: id,
            through,
        }];
        let mut beyond = None;
        let mut at = self.conversations.get(&id);
        while let Some(origin) = at.and_then(|conversation| conversation.from) {
            if origin.agent != agent {
                beyond = Some(origin);
                break;
            }
            // A conversation's origin is always older than itself, so this loop ends. A forged journal that violates
            // this must not cause an endless loop.
            if segments.len() > self.conversations.len() {
                break;
            }
            segments.push(Segment {
                agent,
                conversation: origin.conversation,
                through: origin.seq,
            });
            at = self.conversations.get(&origin.conversation);
        }
        segments.reverse();
        Lineage { segments, beyond }
    }

    /// Conversations of this agent that share a part of `id`.
    pub fn branches_of(&self, id: ConversationId) -> impl Iterator<Item = &Conversation> {
        self.conversations.values().filter(move |conversation| {
            conversation
                .from
                .is_some_and(|origin| origin.conversation == id)
        })
    }

    pub(super) fn touch(&mut self, id: ConversationId, seq: Seq) {
        if let Some(conversation) = self.conversations.get_mut(&id) {
            conversation.head = seq;
        }
    }

    pub(super) fn begin(&mut self, event: &Event, body: &ConversationBegan) -> bool {
        let id = event.conversation;
        if self.conversations.contains_key(&id) {
            return false;
        }
        let ordinal = u32::try_from(self.conversations.len())
            .unwrap_or(u32::MAX)
            .saturating_add(1);
        self.conversations.insert(
            id,
            Conversation {
                id,
                ordinal,
                parent: body.parent,
                from: body.from,
                source: body.source,
                began: event.seq,
                began_at: event.at,
                head: event.seq,
                sealed: None,
                turns: 0,
                ended_turns: 0,
                compactions: 0,
                context_tokens: 0,
                spent: Spent::default(),
                labels: BTreeMap::new(),
                purged: false,
                last_request: None,
                is_used: false,
            },
        );
        if let Some(old) = self.current.replace(id) {
            // After a reset, a conversation without a message is nothing to return to.
            let is_reset = body.source == BeginSource::Reset;
            let is_empty = (self.get(old)).is_some_and(|old| !old.has_messages());
            self.undo.extend((!(is_reset && is_empty)).then_some(old));
            self.redo.clear();
        }
        self.generation = self.generation.saturating_add(1);
        let own_parent = body
            .from
            .filter(|origin| origin.agent == event.agent)
            .map(|origin| origin.conversation)
            .or(body.parent);
        own_parent.is_none_or(|parent| self.conversations.contains_key(&parent))
    }

    /// The user gave a prompt or a command in it.
    pub(super) fn used(&mut self, id: ConversationId) {
        self.with(id, |conversation| conversation.is_used = true);
    }

    pub(super) fn seal(&mut self, event: &Event, body: &ConversationSealed) -> bool {
        self.with(event.conversation, |conversation| {
            conversation.sealed = Some(body.reason);
            conversation.last_request.clone_from(&body.last_request);
        })
    }

    pub(super) fn move_pointer(&mut self, body: &PointerMoved) -> bool {
        let (from, to) = match body.direction {
            Direction::Undo => (&mut self.undo, &mut self.redo),
            Direction::Redo => (&mut self.redo, &mut self.undo),
        };
        let is_next = from.last() == Some(&body.to);
        // Earlier builds returned to conversations without a message, which are in no stack now.
        let known = self.conversations.get(&body.to);
        let was_next = known.is_some_and(|it| !it.has_messages() && !it.purged);
        if !is_next && !was_next {
            return false;
        }
        if is_next {
            from.pop();
        }
        to.extend(self.current);
        self.current = Some(body.to);
        self.generation = self.generation.saturating_add(1);
        self.with(body.to, |conversation| conversation.sealed = None)
    }

    pub(super) fn label(&mut self, event: &Event, body: &CheckpointSet) -> bool {
        let at = body.at.unwrap_or(event.seq);
        self.with(event.conversation, |conversation| {
            conversation.labels.insert(body.label.clone(), at);
        })
    }

    pub(super) fn compacted(&mut self, id: ConversationId) -> bool {
        self.with(id, |conversation| {
            conversation.compactions = conversation.compactions.saturating_add(1);
            conversation.context_tokens = 0;
        })
    }

    pub(super) fn turn_started(&mut self, id: ConversationId) -> bool {
        self.with(id, |conversation| {
            conversation.turns = conversation.turns.saturating_add(1);
            conversation.is_used = true;
        })
    }

    pub(super) fn turn_ended(&mut self, id: ConversationId, busy_ms: u64) {
        self.with(id, |conversation| {
            conversation.ended_turns = conversation.ended_turns.saturating_add(1);
            conversation.spent.work(busy_ms);
        });
    }

    pub(super) fn charge(&mut self, id: ConversationId, body: &RequestEnded) {
        self.with(id, |conversation| {
            conversation.spent.add(body.usage, body.cost);
            if body.provider_request.is_some() {
                conversation.last_request.clone_from(&body.provider_request);
            }
        });
    }

    pub(super) fn answered(&mut self, id: ConversationId, tokens: u64) {
        self.with(id, |conversation| conversation.context_tokens = tokens);
    }

    /// Its content was purged, so no undo may return to it.
    pub(super) fn purged(&mut self, id: ConversationId) -> bool {
        self.undo.retain(|target| *target != id);
        self.redo.retain(|target| *target != id);
        self.with(id, |conversation| conversation.purged = true)
    }

    fn with(&mut self, id: ConversationId, change: impl FnOnce(&mut Conversation)) -> bool {
        match self.conversations.get_mut(&id) {
            Some(conversation) => {
                change(conversation);
                true
            }
            None => false,
        }
    }
}
