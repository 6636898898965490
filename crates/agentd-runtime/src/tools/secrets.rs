//! agentd's own secrets: never shown, and taken out of whatever a tool brings in.

use agentd_core::message::Block;
use std::fmt;

/// What stands in the place of a secret.
pub const MARK: &str = "[redacted by agentd]";

/// A shorter one would hit too much else.
const SHORTEST: usize = 8;

/// The values that must not get out, such as the keys of providers.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        // One that was read from a file may have the end of its line with it.
        let values = values.into_iter().map(|value| value.trim().to_owned());
        Self(values.filter(|value| value.len() >= SHORTEST).collect())
    }

    /// The text with a mark in the place of each secret. Where some overlap, one mark stands for all
    /// that they cover.
    pub fn redact(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        // Up to where the text is part of a secret.
        let mut covered = 0;
        for (at, c) in text.char_indices() {
            let rest = &text.as_bytes()[at..];
            let here = self.0.iter().filter(|it| rest.starts_with(it.as_bytes()));
            let longest = here.map(String::len).max().unwrap_or_default();
            if longest > 0 {
                if at >= covered {
                    out.push_str(MARK);
                }
                covered = covered.max(at + longest);
            }
            if at >= covered {
                out.push(c);
            }
        }
        out
    }

    /// As [`Self::redact`], for a text that was cut off at its end: the beginning of a secret that
    /// stands there goes too.
    pub(super) fn redact_cut(&self, text: &str) -> String {
        let text = self.redact(text);
        let begun = |secret: &String| {
            let lengths = (1..secret.len()).rev();
            let mut prefixes = lengths.filter_map(|length| secret.get(..length));
            prefixes.find(|prefix| text.ends_with(prefix)).map(str::len)
        };
        let begun = self.0.iter().filter_map(begun).max().unwrap_or_default();
        text[..text.len() - begun].to_owned()
    }

    pub(super) fn redact_blocks(&self, blocks: &mut [Block]) {
        for block in blocks {
            if let Block::Text { text } = block {
                *text = self.redact(text);
            }
        }
    }

    pub(super) fn longest(&self) -> usize {
        self.0.iter().map(String::len).max().unwrap_or_default()
    }

    /// For the shim, which takes them out of the output before it is on disk.
    pub(super) fn values(&self) -> Vec<String> {
        self.0.clone()
    }
}

/// Says how many there are, and nothing else.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} hidden)", self.0.len())
    }
}

#[cfg(test)]
mod tests;
