//! What the agent's event stream shows.

use super::{App, Focus, Purpose};
use crate::follow::Seen;
use crate::render::event::{text_of, words};
use agentd_core::event::{Body, Event, LimitKind, MessageStatus};

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

/// The limit at which the last turn ended, after this event.
pub fn limit(event: &Event, before: Option<LimitKind>) -> Option<LimitKind> {
    match &event.body {
        Body::TurnEnded(ended) => ended.limit,
        Body::TurnStarted(_) | Body::TurnContinued(_) | Body::ConversationBegan(_) => None,
        _ => before,
    }
}

impl App {
    pub fn seen(&mut self, seen: Seen) {
        match seen {
            Seen::Event(event) => self.event(*event),
            Seen::Delta(delta) => self.scrollback.delta(delta, self.now),
            Seen::Progress(progress) => self.scrollback.progress(&progress),
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
        self.limit = limit(&event, self.limit);
        match &event.body {
            Body::TurnStarted(_) => self.turn = event.turn,
            Body::TurnEnded(_) => self.turn = None,
            _ => {}
        }
        self.wanted.after(event.kind());
        self.scrollback.event(event, self.now);
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
