//! What the agent's event stream shows.

use super::{App, Focus, Purpose};
use crate::follow::Seen;
use crate::render::event::{text_of, words};
use agentd_core::event::{Body, Event, MessageStatus};

/// A user who pressed a key so recently may be typing: an approval does not take the keys then.
const TYPING_MS: u64 = 1000;

/// The prompt of an event, or a command, as the user typed it.
pub fn prompts(event: &Event) -> impl Iterator<Item = String> {
    let prompt = match &event.body {
        // Without the files that were attached to it.
        Body::Prompt(prompt) => {
            let blocks = prompt.blocks.iter();
            let text = blocks.filter(|block| block.as_attachment().is_none());
            Some(words(&text.cloned().collect::<Vec<_>>()))
        }
        Body::CommandLine(command) => Some(format!("!{}", command.line)),
        _ => None,
    };
    prompt.into_iter()
}

/// The text of a complete message.
pub fn answer(event: &Event) -> Option<String> {
    match &event.body {
        Body::MessageAdded(message) if message.status == MessageStatus::Complete => {
            Some(text_of(message)).filter(|text| !text.trim().is_empty())
        }
        _ => None,
    }
}

impl App {
    pub fn seen(&mut self, seen: Seen) {
        match seen {
            Seen::Event(event) => self.event(*event),
            Seen::Delta(delta) => self.scrollback.delta(delta, self.now),
            Seen::CaughtUp => {}
            Seen::Lost => self.is_lost = true,
            Seen::Found => {
                self.is_lost = false;
                self.wanted.agent.again();
                self.wanted.queue.again();
                self.wanted.tasks.again();
            }
        }
    }

    fn event(&mut self, event: Event) {
        prompts(&event).for_each(|prompt| self.composer.past.add(&prompt));
        if let Some(answer) = answer(&event) {
            self.last_answer = Some(answer);
        }
        match &event.body {
            Body::TurnStarted(_) => self.turn = event.turn,
            Body::TurnEnded(_) => self.turn = None,
            _ => {}
        }
        self.wanted.after(event.kind());
        self.scrollback.event(event, self.now);
    }

    /// Takes over what the agent object says.
    pub fn take_agent(&mut self) {
        self.side.set_children(&self.agent.children);
        let waiting = self.agent.approvals.clone();
        let is_new = self.approvals.set(waiting, self.now);
        if self.approvals.is_empty() {
            if matches!(self.focus, Focus::Approval) {
                self.focus = Focus::Prompt;
            }
        } else if is_new && self.may_lose_keys() {
            self.focus = Focus::Approval;
        }
        self.leave_answered();
    }

    /// Whether an approval may take the keys from the prompt line: the user is not typing there.
    fn may_lose_keys(&self) -> bool {
        let types = self.now.since(self.last_key) < TYPING_MS;
        let is_idle = self.composer.is_empty() && self.purpose == Purpose::Prompt;
        matches!(self.focus, Focus::Prompt) && is_idle && !types
    }

    /// The reason for a denial is no longer needed if the call was answered elsewhere.
    fn leave_answered(&mut self) {
        let (Purpose::Deny { approval, .. } | Purpose::Answer { approval }) = &self.purpose else {
            return;
        };
        let mut waiting = self.agent.approvals.iter();
        if !waiting.any(|it| it.id == *approval) {
            self.leave_purpose();
            self.tell("the call was answered elsewhere");
        }
    }

    /// The prompt line is for prompts again.
    pub fn leave_purpose(&mut self) {
        self.purpose = Purpose::Prompt;
        let draft = std::mem::take(&mut self.draft);
        self.composer.set(&draft);
    }

    /// The prompt line gets another purpose; what was typed comes back afterwards.
    pub fn begin_purpose(&mut self, purpose: Purpose, text: &str) {
        if self.purpose == Purpose::Prompt {
            self.draft = self.composer.take();
        }
        self.purpose = purpose;
        self.composer.set(text);
        self.completion = None;
        self.focus = Focus::Prompt;
    }
}
