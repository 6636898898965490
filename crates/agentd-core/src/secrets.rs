//! The secrets that an agent works with, and their removal from text: what tools and hooks bring in, and what
//! providers say when they refuse.

use crate::environment::is_secret;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
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
        let long = values.filter(|value| value.len() >= SHORTEST);
        let distinct: BTreeSet<String> = long.collect();
        Self(distinct.into_iter().collect())
    }

    /// Those among an agent's variables: the keys of all providers and what the user stored, which `names` has, and
    /// whatever else is named like a secret.
    pub fn of_env(env: &BTreeMap<String, String>, names: &BTreeSet<String>) -> Self {
        let secret = env.iter().filter(|(name, value)| {
            // A variable such as SSH_KEY_PATH says where a secret is: a path is no secret by its variable's name alone.
            names.contains(*name) || (is_secret(name) && !value.starts_with(['/', '~']))
        });
        Self::new(secret.map(|(_, value)| value.clone()))
    }

    /// These and more.
    #[must_use]
    pub fn and(self, more: impl IntoIterator<Item = String>) -> Self {
        Self::new(self.0.into_iter().chain(more))
    }

    /// The text with a mark in the place of each secret. Where some overlap, one mark stands for all
    /// that they cover.
    pub fn redact(&self, text: &str) -> String {
        if !self.0.iter().any(|secret| text.contains(secret.as_str())) {
            return text.to_owned();
        }
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
    pub fn redact_cut(&self, text: &str) -> String {
        let text = self.redact(text);
        let begun = |secret: &String| {
            let lengths = (1..secret.len()).rev();
            let mut prefixes = lengths.filter_map(|length| secret.get(..length));
            prefixes.find(|prefix| text.ends_with(prefix)).map(str::len)
        };
        let begun = self.0.iter().filter_map(begun).max().unwrap_or_default();
        text[..text.len() - begun].to_owned()
    }

    /// Every text in a JSON value, names of fields included.
    pub fn redact_json(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.redact(&text)),
            Value::Array(items) => {
                let items = items.into_iter().map(|item| self.redact_json(item));
                Value::Array(items.collect())
            }
            Value::Object(fields) => {
                let fields = fields
                    .into_iter()
                    .map(|(name, value)| (self.redact(&name), self.redact_json(value)));
                Value::Object(fields.collect())
            }
            plain => plain,
        }
    }

    /// The length in bytes of the longest one.
    pub fn longest(&self) -> usize {
        self.0.iter().map(String::len).max().unwrap_or_default()
    }

    /// For the shim, which takes them out of the output before it is on disk, and for the daemon, which runs hooks.
    pub fn values(&self) -> Vec<String> {
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
