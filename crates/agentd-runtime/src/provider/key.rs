//! A provider's key. It is sent only to the provider.

use std::fmt;

/// `Debug` never prints the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Trims whitespace, which files and commands leave around a key.
    pub fn new(key: &str) -> Self {
        Self(key.trim().to_owned())
    }

    /// The secret itself: for the request that sends it, and for the code that redacts it. Never for a message, a log
    /// or an environment.
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
