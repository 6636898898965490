//! The path of a value in the front matter: `permissions[0].tool`.

use std::fmt::{self, Display, Formatter};

/// A longer key is cut in messages: it may be a whole pasted file.
const SHOWN: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// The steps from the root to a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path(pub Vec<Step>);

impl Path {
    pub fn key(key: &str) -> Self {
        Self(vec![Step::Key(key.to_owned())])
    }

    pub fn then(mut self, key: &str) -> Self {
        self.0.push(Step::Key(key.to_owned()));
        self
    }

    pub fn at(mut self, index: usize) -> Self {
        self.0.push(Step::Index(index));
        self
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (nth, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) if nth == 0 => f.write_str(&shown(key))?,
                Step::Key(key) => write!(f, ".{}", shown(key))?,
            }
        }
        Ok(())
    }
}

/// A word of the user, made safe for a one-line message on a terminal.
pub(super) fn shown(word: &str) -> String {
    let mut chars = word.chars();
    let mut out: String = chars
        .by_ref()
        .take(SHOWN)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}
