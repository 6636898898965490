//! What the editor has seen of a reply while it streamed. The message that ends the reply adds only the rest.

use agentd_client::api::Delta;

#[derive(Default)]
pub struct Streamed {
    request: Option<String>,
    /// The reply is a summary, which is not shown.
    compacts: bool,
    pub text: Shown,
    pub thinking: Shown,
}

impl Streamed {
    pub fn begin(&mut self, request: String, compacts: bool) {
        *self = Self {
            request: Some(request),
            compacts,
            ..Self::default()
        };
    }

    pub const fn compacts(&self) -> bool {
        self.compacts
    }

    /// Whether the piece is shown.
    pub fn add(&mut self, delta: &Delta) -> bool {
        if self.compacts || self.request.as_ref() != Some(&delta.request) {
            return false;
        }
        self.text.0.push_str(&delta.text);
        self.thinking.0.push_str(&delta.thinking);
        true
    }

    /// What was shown of the reply to this request; nothing of another one.
    pub fn take(&mut self, request: Option<&str>) -> Self {
        let shown = std::mem::take(self);
        match shown.request.as_deref() == request {
            true => shown,
            false => Self::default(),
        }
    }
}

/// A text as it was shown, across blocks.
#[derive(Default)]
pub struct Shown(String);

impl Shown {
    /// What is left to show of the next block.
    pub fn remaining<'a>(&mut self, block: &'a str) -> Option<&'a str> {
        if let Some(later) = self.0.strip_prefix(block) {
            self.0 = later.to_owned();
            return None;
        }
        let shown = std::mem::take(&mut self.0);
        // If the block does not begin with what was shown, some of it did not arrive: it is shown as a whole.
        let rest = block.strip_prefix(shown.as_str()).unwrap_or(block);
        (!rest.is_empty()).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_rest_of_a_block_is_shown() {
        let mut shown = Shown("one, tw".to_owned());
        assert_eq!(shown.remaining("one, "), None);
        assert_eq!(shown.remaining("two"), Some("o"));
        assert_eq!(shown.remaining("three"), Some("three"));
        let mut other = Shown("xyz".to_owned());
        assert_eq!(other.remaining("one"), Some("one"));
        assert_eq!(other.remaining(""), None);
    }
}
