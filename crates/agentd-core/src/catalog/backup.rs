//! The section of the user's file about backups.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

const MINUTE_MS: u64 = 60_000;

/// `[backup]`: the daemon makes backups by itself. Without this section it makes none.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupSettings {
    /// Where they are written: a path that begins with `/` or `~/`.
    pub directory: String,
    /// The time between two backups, in milliseconds. Default: a day.
    #[serde(rename = "every", default = "day", deserialize_with = "period")]
    pub every_ms: u64,
    /// How many are kept. Default: 7.
    #[serde(default = "week")]
    pub keep: usize,
}

const fn day() -> u64 {
    24 * 60 * MINUTE_MS
}

const fn week() -> usize {
    7
}

impl BackupSettings {
    /// The key that has a value that cannot be used, and why.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        let directory = &self.directory;
        if !directory.starts_with('/') && !directory.starts_with("~/") {
            let reason = "it must be a path that begins with `/` or `~/`".to_owned();
            return Err(("directory", reason));
        }
        if self.every_ms < MINUTE_MS {
            return Err(("every", "it must be a minute (`1m`) or longer".to_owned()));
        }
        if self.keep == 0 {
            return Err(("keep", "it must be 1 or more".to_owned()));
        }
        Ok(())
    }
}

/// A time with its unit, in milliseconds.
pub(super) fn period<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    millis(&text).ok_or_else(|| {
        D::Error::custom("expected a time with its unit, such as \"30m\", \"12h\" or \"7d\"")
    })
}

/// A whole number with a unit.
fn millis(text: &str) -> Option<u64> {
    let unit = text.chars().next_back()?;
    let number: u64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
    let minutes = match unit {
        'm' => 1,
        'h' => 60,
        'd' => 24 * 60,
        'w' => 7 * 24 * 60,
        _ => return None,
    };
    number.checked_mul(minutes)?.checked_mul(MINUTE_MS)
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;
    use super::*;

    fn read(text: &str) -> Result<Option<BackupSettings>, String> {
        let mut catalog = Catalog::built_in();
        let read = catalog.extend(text, "config.toml");
        read.map_err(|error| error.to_string())?;
        Ok(catalog.backup().cloned())
    }

    #[test]
    fn the_section_has_defaults_and_none_is_no_backups() {
        assert_eq!(read(""), Ok(None));
        let expected = BackupSettings {
            directory: "/srv/backups".to_owned(),
            every_ms: 86_400_000,
            keep: 7,
        };
        let found = read("[backup]\ndirectory = \"/srv/backups\"\n");
        assert_eq!(found, Ok(Some(expected)));
        let found = read("[backup]\ndirectory = \"~/b\"\nevery = \"2w\"\nkeep = 1\n");
        assert_eq!(found.unwrap().unwrap().every_ms, 14 * 86_400_000);
    }

    #[test]
    fn a_value_that_cannot_be_used_is_named_with_its_line() {
        for (line, text, reason) in [
            (2, "[backup]\ndirectory = \"backups\"\n", "begins with"),
            (
                3,
                "[backup]\ndirectory = \"/b\"\nevery = \"soon\"\n",
                "such as",
            ),
            (
                3,
                "[backup]\ndirectory = \"/b\"\nevery = \"0m\"\n",
                "a minute",
            ),
            (3, "[backup]\ndirectory = \"/b\"\nkeep = 0\n", "1 or more"),
            (3, "[backup]\ndirectory = \"/b\"\nkeeps = 2\n", "keep"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(&format!("line {line}")), "{error}");
            assert!(error.contains(reason), "{error}");
        }
    }
}
