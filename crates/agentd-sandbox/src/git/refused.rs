//! What a tool may not do to a repository, and did: for the result of its call.

use super::aside::Planted;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How many names of each kind are told. A tool decides how many there are.
const MOST: usize = 40;

/// What a tool may not do to a repository, and did. Paths are text: a name that is not UTF-8 would keep the record of the
/// task from being written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refused {
    /// What was moved away from where git reads it.
    pub moved: Vec<String>,
    /// What could not be moved away: the user's git would run what it names.
    pub stays: Vec<String>,
    /// Settings that did not become settings of the repository, by their names.
    pub settings: Vec<String>,
}

impl Refused {
    pub(super) fn of(planted: &[Planted], settings: Vec<String>) -> Self {
        let mut refused = Self {
            settings,
            ..Self::default()
        };
        let text = |path: &Path| path.display().to_string();
        for planted in planted {
            match planted {
                Planted::Moved(path) => refused.moved.push(text(path)),
                Planted::Stays(path) => refused.stays.push(text(path)),
            }
        }
        for names in [
            &mut refused.moved,
            &mut refused.stays,
            &mut refused.settings,
        ] {
            let more = names.len().saturating_sub(MOST);
            if more > 0 {
                names.truncate(MOST);
                names.push(format!("{more} more"));
            }
        }
        refused
    }

    pub fn is_empty(&self) -> bool {
        self.moved.is_empty() && self.stays.is_empty() && self.settings.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::PathBuf;

    #[test]
    fn names_of_any_bytes_can_be_recorded_and_many_are_counted() {
        let odd = PathBuf::from(OsStr::from_bytes(b"caf\xe9/.git/hooks"));
        let mut planted = vec![Planted::Stays(odd)];
        planted.extend((0..100).map(|n| Planted::Moved(PathBuf::from(format!("{n}")))));
        let refused = Refused::of(&planted, Vec::new());
        serde_json::to_string(&refused).unwrap();
        assert_eq!(refused.stays, ["caf\u{fffd}/.git/hooks"]);
        assert_eq!(refused.moved.len(), MOST + 1);
        assert_eq!(refused.moved.last().unwrap(), "60 more");
    }
}
