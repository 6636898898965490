//! What the events of the agent mean for the session: which conversation it shows, which prompts have ended, and what is to be
//! asked for again.

use super::{Session, Whose};
use crate::acp::translate::When;
use crate::error::{Error, Exit};
use agentd_core::event::{Body, Event, ResetSource};
use agentd_core::id::{ConversationId, OpId};

impl Session {
    pub(super) fn event(&mut self, event: &Event) {
        self.before(event);
        // What happens in a conversation that the session does not show is not shown.
        if event.conversation == self.reference.conversation {
            let pending = &self.pending;
            let updates = self.translator.event(event, When::Now, |prompt| {
                match pending.iter().any(|pending| pending.is(prompt)) {
                    true => Whose::Own,
                    false => Whose::Other,
                }
            });
            self.update(updates);
        }
        self.after(event);
    }

    /// A text of the program.
    pub(super) fn tell(&self, text: &str) {
        let id = format!("agentd-{}", uuid::Uuid::now_v7());
        self.update([self.translator.notice(&id, text)]);
    }

    /// What must be known before the event is shown.
    fn before(&mut self, event: &Event) {
        match &event.body {
            Body::PromptQueued(queued) => self.queued(queued.key.as_deref(), queued.prompt),
            Body::ResetBegan(began) => self.reset_by = began.source,
            Body::ConversationBegan(began) => self.moved(event.conversation, began.op),
            Body::PointerMoved(moved) => self.moved(moved.to, moved.op),
            Body::ResetEnded(_) | Body::ResetWithdrawn(_) => self.reset_by = ResetSource::User,
            _ => {}
        }
    }

    /// Another conversation of the agent is current.
    fn moved(&mut self, to: ConversationId, op: Option<OpId>) {
        let is_own = op.is_some_and(|op| self.own_moves.remove(&op));
        if to == self.reference.conversation {
            self.is_left = false;
            return;
        }
        let is_by_agent = self.reset_by != ResetSource::User;
        if !is_own && !is_by_agent {
            self.is_left = true;
            return;
        }
        self.reference.conversation = to;
        self.is_left = false;
        if is_by_agent {
            self.tell("The agent began a new conversation; /undo returns to the previous one.");
        }
    }

    /// Whether another conversation is current now. The event that says so may not have arrived yet.
    pub(super) async fn is_left(&mut self) -> bool {
        if !self.is_left && self.own_moves.is_empty() {
            let agent = self.shared.client.agent(&self.target.id).await;
            let current = agent.ok().and_then(|agent| agent.conversation);
            self.is_left = current.is_some_and(|it| it.id != self.reference.conversation);
        }
        self.is_left
    }

    /// What the event ends, or makes stale.
    fn after(&mut self, event: &Event) {
        match &event.body {
            Body::PromptsTaken(taken) => self.taken(&taken.prompts, event.turn),
            Body::PromptBlocked(blocked) => self.taken(&[blocked.prompt], event.turn),
            Body::PromptsRemoved(gone) => self.gone(&gone.prompts),
            Body::PromptsSetAside(aside) => self.gone(&aside.prompts),
            Body::TurnPaused(paused) => self.paused(event.turn, paused.reason),
            Body::TurnEnded(ended) => {
                self.turn_ended(event.turn, ended);
                self.look_at_agent();
            }
            Body::AgentFailed(_) | Body::AgentStopped(_) => self.fail_all(|| {
                Error::new(Exit::Waiting, "the agent was stopped or has failed")
                    .because("the prompt is kept and is answered when the agent runs")
                    .next("send /start")
            }),
            Body::SpecSet(_) => {
                self.load_spec();
                // The sandbox of a call that waits may be another one now.
                self.look_at_agent();
            }
            Body::ApprovalRequested(_)
            | Body::ApprovalAnswered(_)
            | Body::ApprovalWithdrawn(_)
            | Body::SubagentStarted(_)
            | Body::SubagentEnded(_)
            | Body::ConversationBegan(_)
            | Body::PointerMoved(_) => self.look_at_agent(),
            _ => {}
        }
    }
}
