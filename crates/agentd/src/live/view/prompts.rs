//! Prompts: shown where they are answered. One that waits behind a turn is one line until then.

use super::{Scope, Section, View};
use crate::live::line::Line;
use crate::render::Detail;
use crate::render::event::{told, words};
use crate::terminal::{QUIET, without_controls};
use agentd_core::event::{Event, Prompt};
use agentd_core::id::PromptId;

impl View {
    pub(super) fn prompt(&mut self, event: &Event, prompt: &Prompt) {
        let lines = told(event, None, Detail::Brief).map(|text| Line::of_painted(&text));
        let lines = lines.unwrap_or_default();
        if self.turn.is_none() || self.options.scope != Scope::Agent {
            return self.say(Section::Prompt, lines);
        }
        self.waiting.insert(prompt.prompt, lines);
        let text = words(&prompt.blocks);
        let first = text.lines().next().unwrap_or_default();
        let line = format!("queued: {}", without_controls(first));
        self.interrupted_by_others();
        self.say(Section::Other, vec![Line::painted(QUIET, line)]);
    }

    /// The turn answers these prompts now.
    pub(super) fn prompts_taken(&mut self, prompts: &[PromptId]) {
        for prompt in prompts {
            if let Some(lines) = self.waiting.remove(prompt) {
                self.interrupted_by_others();
                self.say(Section::Prompt, lines);
            }
        }
    }

    /// They will not be answered, or not here.
    pub(super) fn prompts_gone(&mut self, prompts: &[PromptId]) {
        for prompt in prompts {
            self.waiting.remove(prompt);
            self.aside.remove(prompt);
        }
    }

    /// They will not be answered unless they are queued again.
    pub(super) fn prompts_set_aside(&mut self, prompts: &[PromptId]) {
        for prompt in prompts {
            let lines = self.waiting.remove(prompt);
            self.aside.extend(lines.map(|lines| (*prompt, lines)));
        }
    }

    pub(super) fn prompts_requeued(&mut self, prompts: &[PromptId]) {
        for prompt in prompts {
            let lines = self.aside.remove(prompt);
            self.waiting.extend(lines.map(|lines| (*prompt, lines)));
        }
    }

    /// Whether a prompt was shown that is not answered yet.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}
