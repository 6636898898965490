//! A provider's key. It is shown to the provider and to nobody else.

use std::fmt;

/// Prints as what it is, never as what it says.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// White space around it is how files and commands hand keys over.
    pub fn new(key: &str) -> Self {
        Self(key.trim().to_owned())
    }

    /// The secret itself: for the request that shows it, and for whoever has to keep it out of what
    /// is written. Never for a message, a log or an environment.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn a_key_is_never_printed() {
        let key = Key::new(" sk-canary\n");
        assert!(!format!("{key:?}").contains("canary"));
        assert_eq!(key.expose(), "sk-canary");
    }
}
