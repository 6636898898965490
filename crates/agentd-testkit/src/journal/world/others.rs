//! What others write into the journal: the user, and the daemon with its resets, undos and branches.

use super::World;
use crate::journal::ops::ReplyOp;
use agentd_core::event::*;
use agentd_core::id::*;

impl World {
    pub(super) fn prompt(&mut self, mode: PromptMode, image: bool) {
        let prompt = PromptId::new(self.source.uuid());
        let mut blocks = vec![self.source.text()];
        if image {
            blocks.push(self.source.image());
        }
        let key = None;
        let current = self.current();
        let queued = PromptQueued { prompt, key, mode };
        self.write(current, [Prompt { prompt, blocks }.into(), queued.into()]);
    }

    pub(super) fn approve(&mut self, allow: bool) {
        let waiting = self.machine.agent().approvals.waiting().next();
        let Some((&approval, _)) = waiting else {
            return;
        };
        let decision = if allow {
            Decision::Allow
        } else {
            Decision::Deny
        };
        let current = self.current();
        self.write_in_turn(current, [ApprovalAnswered { approval, decision }.into()]);
    }

    pub(super) fn reset(&mut self, keep_queue: bool) {
        if !self.idle() {
            return;
        }
        let old = self.current();
        let new = ConversationId::new(self.source.uuid());
        let waiting: Vec<_> = self
            .machine
            .agent()
            .inbox
            .waiting()
            .map(|q| q.prompt)
            .collect();
        let mut bodies = vec![];
        if !waiting.is_empty() && !keep_queue {
            bodies.push(
                PromptsSetAside {
                    prompts: waiting.clone(),
                }
                .into(),
            );
        }
        bodies.push(sealed(SealReason::Reset));
        self.write_quietly(old, bodies);
        let mut opening = vec![began(BeginSource::Reset, Some(old), None)];
        if keep_queue {
            opening.extend(self.carry_over(old, &waiting));
        }
        self.write_quietly(new, opening);
        self.take_over(After::Start, ReplyOp::default(), &[]);
    }

    /// The same prompts, in a new conversation.
    pub(super) fn carry_over(&self, old: ConversationId, waiting: &[PromptId]) -> Vec<Body> {
        let mut bodies = Vec::new();
        for event in self.journals.of(self.agent) {
            if let Body::Prompt(words) = &event.body
                && event.conversation == old
                && waiting.contains(&words.prompt)
            {
                let (prompt, key, mode) = (words.prompt, None, PromptMode::Queue);
                bodies.push(PromptQueued { prompt, key, mode }.into());
                bodies.push(words.clone().into());
            }
        }
        bodies
    }

    pub(super) fn move_pointer(&mut self, direction: Direction) {
        let tree = &self.machine.agent().tree;
        let (target, reason) = match direction {
            Direction::Undo => (tree.undo_target(), SealReason::Undo),
            Direction::Redo => (tree.redo_target(), SealReason::Redo),
        };
        let (Some(to), true) = (target, self.idle()) else {
            return;
        };
        let old = self.current();
        let inbox = &self.machine.agent().inbox;
        let waiting: Vec<_> = inbox.waiting().map(|q| q.prompt).collect();
        let back: Vec<_> = inbox
            .set_aside_prompts()
            .filter(|q| q.conversation == to)
            .map(|q| q.prompt)
            .collect();
        let mut closing = vec![];
        if !waiting.is_empty() {
            closing.push(PromptsSetAside { prompts: waiting }.into());
        }
        closing.push(sealed(reason));
        self.write_quietly(old, closing);
        let op = None;
        let mut opening = vec![PointerMoved { to, direction, op }.into()];
        if !back.is_empty() {
            opening.push(PromptsRequeued { prompts: back }.into());
        }
        self.write_quietly(to, opening);
        self.take_over(After::Start, ReplyOp::default(), &[]);
    }

    /// Some event of the current conversation, counted from its end.
    pub(super) fn some_event(&self, back: usize) -> Option<Seq> {
        let current = self.current();
        let own = self.journals.of(self.agent).iter().rev();
        own.filter(|event| event.conversation == current)
            .nth(back)
            .map(|event| event.seq)
    }

    pub(super) fn rewind(&mut self, back: usize) {
        let (Some(seq), true) = (self.some_event(back), self.idle()) else {
            return;
        };
        let old = self.current();
        let new = ConversationId::new(self.source.uuid());
        self.write_quietly(old, [sealed(SealReason::Rewind)]);
        let from = self.origin(old, seq);
        let mut opening = vec![began(BeginSource::Rewind, Some(old), Some(from))];
        opening.extend(self.close_branch(from));
        self.write_quietly(new, opening);
        self.take_over(After::Start, ReplyOp::default(), &[]);
    }

    pub(super) fn fork(&mut self, back: usize) {
        let Some(seq) = self.some_event(back) else {
            return;
        };
        let from = self.origin(self.current(), seq);
        let closing = self.close_branch(from);
        self.forget_live();
        self.agent = AgentId::new(self.source.uuid());
        let new = ConversationId::new(self.source.uuid());
        let (name, mode) = (self.source.word(), Mode::Persistent);
        let mut opening = vec![
            AgentCreated { name, mode }.into(),
            began(BeginSource::Fork, None, Some(from)),
        ];
        opening.extend(closing);
        self.write_quietly(new, opening);
        self.take_over(After::Start, ReplyOp::default(), &[]);
    }

    const fn origin(&self, conversation: ConversationId, seq: Seq) -> Origin {
        let agent = self.agent;
        Origin {
            agent,
            conversation,
            seq,
        }
    }

    /// A branch from the middle of a turn gets neither its calls nor its approvals, and is told.
    pub(super) fn close_branch(&self, from: Origin) -> Vec<Body> {
        let state = self
            .journals
            .state(from.agent, self.journals.of(from.agent).len());
        let window = self
            .journals
            .window(from.agent, &state, from.conversation, from.seq);
        agentd_core::recover::close_branch(&window)
    }
}

pub(super) fn began(
    source: BeginSource,
    parent: Option<ConversationId>,
    from: Option<Origin>,
) -> Body {
    let op = None;
    ConversationBegan {
        source,
        parent,
        from,
        op,
    }
    .into()
}

pub(super) fn sealed(reason: SealReason) -> Body {
    let (last_request, op) = (None, None);
    ConversationSealed {
        reason,
        last_request,
        op,
    }
    .into()
}
