//! The secrets that an agent uses, and their removal from text: the output of tools and hooks, and providers' error
//! messages.

use crate::environment::{is_secret, url_secrets};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The text that replaces a secret.
pub const MARK: &str = "[redacted by agentd]";

/// Shorter values are not redacted, because they would match too much other text.
const SHORTEST: usize = 8;

/// The values that must not be disclosed, such as the keys of providers.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        // A value that was read from a file may end with a line break.
        let values = values.into_iter().map(|value| value.trim().to_owned());
        let long = values.filter(|value| value.len() >= SHORTEST);
        let distinct: BTreeSet<String> = long.collect();
        Self(distinct.into_iter().collect())
    }

    /// The secrets among an agent's variables: those in `names` (the keys of all providers and the user's stored
    /// secrets), those whose name looks like a secret, and passwords in URLs, such as that of a proxy.
    pub fn of_env(env: &BTreeMap<String, String>, names: &BTreeSet<String>) -> Self {
        let secret = env.iter().filter(|(name, value)| {
            // A variable such as SSH_KEY_PATH holds the path of a secret, and a path is not a secret because of its
            // variable's name.
            names.contains(*name) || (is_secret(name) && !value.starts_with(['/', '~']))
        });
        let in_urls = env.values().flat_map(|value| url_secrets(value));
        Self::new(secret.map(|(_, value)| value.clone()).chain(in_urls))
    }

    /// These secrets and more.
    #[must_use]
    pub fn and(self, more: impl IntoIterator<Item = String>) -> Self {
        Self::new(self.0.into_iter().chain(more))
    }

    /// Whether these bytes contain a secret.
    pub fn are_in(&self, bytes: &[u8]) -> bool {
        let mut secrets = self.0.iter();
        match std::str::from_utf8(bytes) {
            Ok(text) => secrets.any(|secret| text.contains(secret.as_str())),
            Err(_) => secrets.any(|secret| {
                let mut windows = bytes.windows(secret.len());
                windows.any(|window| window == secret.as_bytes())
            }),
        }
    }

    /// The text with a mark in place of each secret. Overlapping secrets are replaced by one mark.
    pub fn redact(&self, text: &str) -> String {
        if !self.0.iter().any(|secret| text.contains(secret.as_str())) {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        // The position up to which the text belongs to a secret.
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

    /// Like [`Self::redact`], for a text that was cut off at its end: the beginning of a secret at the end is removed
    /// too.
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

    /// Redacts every string in a JSON value, including the names of fields.
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

    /// The length of the longest secret, in bytes.
    pub fn longest(&self) -> usize {
        self.0.iter().map(String::len).max().unwrap_or_default()
    }

    /// For the shim, which removes them from the output before it is written to disk, and for the daemon, which runs
    /// hooks.
    pub fn values(&self) -> Vec<String> {
        self.0.clone()
    }
}

/// Prints only how many there are.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} hidden)", self.0.len())
    }
}

#[cfg(test)]
mod tests;
