//! What the user has typed and not sent, across the end of the chat.

use super::{App, Focus, Purpose};
use crate::chat::unsent::Unsent;

impl App {
    pub fn unsent(&self) -> Unsent {
        let text = match self.purpose {
            Purpose::Prompt => self.composer.text(),
            _ => self.draft.clone(),
        };
        Unsent {
            untyped: self.composer.untyped_of(&text),
            chosen: self.chosen_in(&text),
            text,
        }
    }

    /// Whether the prompt line is empty, also behind a reason or another text for which it is used.
    pub fn has_no_text(&self) -> bool {
        self.purpose == Purpose::Prompt && self.composer.is_empty()
    }

    /// Puts what an earlier chat has left into the prompt line.
    pub fn restore(&mut self, unsent: Unsent) {
        self.composer.restore(&unsent.text, &unsent.untyped);
        self.chosen = unsent.chosen;
        // There is text in the prompt: a call that waits does not have the keys.
        if matches!(self.focus, Focus::Approval) {
            self.focus = Focus::Prompt;
        }
        self.tell("this was typed before and not sent; Ctrl-C clears it");
    }
}
