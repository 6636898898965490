//! What the user and the daemon write into the journal: prompts, answers, branches.

use super::JournalDriver;
use crate::journal::ops::ReplyOp;
use agentd_core::begin::{self, NewFork};
use agentd_core::branch_point::BranchPoint;
use agentd_core::event::*;
use agentd_core::id::*;
use agentd_core::window::Window;

impl JournalDriver {
    pub(super) fn prompt(&mut self, mode: PromptMode, image: bool) {
        let prompt = PromptId::new(self.source.uuid());
        let mut blocks = vec![self.source.text()];
        if image {
            blocks.extend([self.source.image(), self.source.attachment()]);
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
        self.write_in_turn(current, [ApprovalAnswered::new(approval, decision).into()]);
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
        if let Some(at) = self.some_event(back) {
            let conversation = None;
            self.reset(ResetTo::Rewind { at, conversation }, false);
        }
    }

    pub(super) fn fork(&mut self, back: usize) {
        let Some(seq) = self.some_event(back) else {
            return;
        };
        let (name, new) = (self.source.word(), ConversationId::new(self.source.uuid()));
        let agent = AgentId::new(self.source.uuid());
        let (seen, parent) = (self.seen(seq), self.machine.agent());
        let place = BranchPoint {
            conversation: self.current(),
            at: seq,
        };
        let lines = begin::fork(parent, &seen, place, NewFork::persistent(&name), new, None);
        let Ok(lines) = lines else { return };
        self.forget_live();
        self.agent = agent;
        for (conversation, body) in lines {
            self.write_quietly(conversation, [body]);
        }
        self.take_over(After::Start, ReplyOp::default(), &[]);
    }

    /// What the model saw of the current conversation up to some event.
    pub(super) fn seen(&self, through: Seq) -> Window {
        let state = self.machine.agent();
        self.journals
            .window(self.agent, state, self.current(), through)
    }
}
