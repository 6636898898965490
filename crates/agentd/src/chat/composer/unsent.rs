//! The text of the prompt line across the end of the chat.

use super::Composer;
use crate::terminal::without_controls;
use std::collections::BTreeSet;

impl Composer {
    /// The `@path` words of a text of this prompt line that the user did not type.
    pub fn untyped_of(&self, text: &str) -> BTreeSet<String> {
        self.untyped.of(text)
    }

    /// Puts the text of an earlier chat into the prompt line.
    pub fn restore(&mut self, text: &str, untyped: &BTreeSet<String>) {
        self.set(&without_controls(text));
        self.untyped.add(untyped);
    }
}
