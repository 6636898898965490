//! The user changes the queue, at any moment: also while a runtime is about to take from it.

use super::Sim;
use agentd_core::event::{Prompt, PromptEdited, PromptMoved, PromptsRemoved};
use agentd_core::id::PromptId;
use agentd_core::message::Block;

impl Sim {
    pub(super) fn edit_prompt(&mut self, which: u8) {
        let Some(prompt) = self.queued(which) else {
            return;
        };
        self.withdraw(prompt);
        let blocks = vec![Block::text(format!("please do {} instead", self.new_id()))];
        let edited = PromptEdited { prompt };
        self.write([edited.into(), Prompt { prompt, blocks }.into()]);
    }

    pub(super) fn move_prompt(&mut self, which: u8) {
        let Some(prompt) = self.queued(which) else {
            return;
        };
        let before = self.queued(which / 2).filter(|before| *before != prompt);
        self.write([PromptMoved { prompt, before }.into()]);
    }

    pub(super) fn remove_prompt(&mut self, which: u8) {
        let Some(prompt) = self.queued(which) else {
            return;
        };
        self.withdraw(prompt);
        let prompts = vec![prompt];
        self.write([PromptsRemoved { prompts }.into()]);
    }

    /// None if there is no daemon, or nothing is queued.
    fn queued(&self, which: u8) -> Option<PromptId> {
        self.daemon.as_ref()?;
        let mut waiting = self.kept.state().inbox.waiting();
        let which = usize::from(which) % waiting.len().max(1);
        waiting.nth(which).map(|queued| queued.prompt)
    }

    /// From the next event on, no request contains the text that the prompt has now.
    fn withdraw(&mut self, prompt: PromptId) {
        let mut texts = Vec::new();
        let window = self.kept.window();
        let blocks = window.pending(prompt).unwrap_or_default();
        blocks.iter().for_each(|block| block.words(&mut texts));
        assert!(!texts.is_empty(), "a queued prompt without its text");
        let from = self.kept.state().head.next();
        self.withdrawn
            .extend(texts.into_iter().map(|text| (text, from)));
    }
}
