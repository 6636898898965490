//! The section of the user's file about what is deleted after some time.

use super::backup::period;
use serde::{Deserialize, Deserializer};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// `[retention]`: what the daemon deletes by itself. Without this section it deletes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionSettings {
    /// One-shot agents that have finished and were not used for this long, in milliseconds: they are archived, and their
    /// content is purged.
    #[serde(rename = "oneshots", deserialize_with = "after")]
    pub oneshots_ms: Option<u64>,
    /// Conversations that their agents left this long ago, in milliseconds: they are purged.
    #[serde(rename = "conversations", deserialize_with = "after")]
    pub conversations_ms: Option<u64>,
}

impl RetentionSettings {
    pub const fn is_on(&self) -> bool {
        self.oneshots_ms.is_some() || self.conversations_ms.is_some()
    }

    /// The key that has a value that cannot be used, and why. A short time is a likely mistake: `6m` is six minutes.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        for (key, after) in [
            ("oneshots", self.oneshots_ms),
            ("conversations", self.conversations_ms),
        ] {
            if after.is_some_and(|after| after < DAY_MS) {
                let reason =
                    "it must be a day (`1d`) or longer: what it deletes does not come back";
                return Err((key, reason.to_owned()));
            }
        }
        Ok(())
    }
}

fn after<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    period(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;
    use super::*;

    fn read(text: &str) -> Result<RetentionSettings, String> {
        let mut catalog = Catalog::built_in();
        let read = catalog.extend(text, "config.toml");
        read.map_err(|error| error.to_string())?;
        Ok(*catalog.retention())
    }

    #[test]
    fn nothing_is_deleted_unless_the_user_says_so() {
        for text in ["", "[retention]\n"] {
            assert!(!read(text).unwrap().is_on(), "{text}");
        }
        let policy = read("[retention]\nconversations = \"26w\"\n").unwrap();
        assert_eq!(policy.conversations_ms, Some(26 * 7 * DAY_MS));
        assert_eq!(policy.oneshots_ms, None);
        assert!(policy.is_on());
    }

    #[test]
    fn a_short_time_is_refused_with_its_line() {
        for (text, reason) in [
            ("[retention]\noneshots = \"6m\"\n", "a day"),
            ("[retention]\nconversations = \"23h\"\n", "a day"),
            ("[retention]\nconversations = \"never\"\n", "such as"),
            ("[retention]\nagents = \"30d\"\n", "agents"),
        ] {
            let error = read(text).unwrap_err();
            assert!(
                error.contains("line 2") && error.contains(reason),
                "{error}"
            );
        }
    }
}
