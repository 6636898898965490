//! A serde error on its way up through the tree, and the suggestion for a misspelled key.

use super::Error;
use super::model::BODY;
use super::path::{Path, Step, shown};
use serde::de::{self, Expected, Unexpected};
use std::fmt::{self, Display, Formatter};

/// Each level adds its step; the innermost level adds the line.
#[derive(Debug)]
pub(crate) struct Fault {
    what: What,
    line: Option<usize>,
    /// From the innermost to the outermost.
    steps: Vec<Step>,
}

#[derive(Debug)]
enum What {
    UnknownKey { nearest: Option<&'static str> },
    Invalid(String),
}

impl Fault {
    pub fn invalid(reason: impl Into<String>) -> Self {
        Self {
            what: What::Invalid(reason.into()),
            line: None,
            steps: Vec::new(),
        }
    }

    pub fn at(mut self, line: usize) -> Self {
        self.line.get_or_insert(line);
        self
    }

    pub fn below(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    pub fn into_error(self, first_line: usize) -> Error {
        let line = self.line.unwrap_or(first_line);
        let key = Path(self.steps.into_iter().rev().collect()).to_string();
        match self.what {
            What::Invalid(reason) => Error::Invalid { key, line, reason },
            What::UnknownKey { nearest } => Error::UnknownKey {
                key,
                line,
                nearest: nearest.map(str::to_owned),
            },
        }
    }
}

impl std::error::Error for Fault {}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Invalid(reason) => f.write_str(reason),
            What::UnknownKey { .. } => f.write_str("unknown key"),
        }
    }
}

impl de::Error for Fault {
    fn custom<T: Display>(reason: T) -> Self {
        Self::invalid(reason.to_string())
    }

    // Serde's own message would contain the value, which may be a secret.
    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid(format!("expected {expected}"))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid(format!("expected {expected}"))
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        let list = known.join(", ");
        Self::invalid(format!("`{}` is not one of: {list}", shown(word)))
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        let what = What::UnknownKey {
            nearest: nearest(key, known),
        };
        let fault = Self {
            what,
            line: None,
            steps: Vec::new(),
        };
        fault.below(Step::Key(key.to_owned()))
    }

    fn missing_field(key: &'static str) -> Self {
        Self::invalid("it is missing; add it").below(Step::Key(key.to_owned()))
    }
}

/// The known key that `key` is most likely a misspelling of.
fn nearest(key: &str, known: &'static [&'static str]) -> Option<&'static str> {
    // Its former name.
    let key = match key {
        "thinking" => "reasoning",
        _ => key,
    };
    // Two mistakes in a short word, one more for every three further letters.
    let allowed = 1 + key.chars().count() / 3;
    known
        .iter()
        // The prompt is the body of the file, not a key.
        .filter(|name| **name != BODY)
        .map(|name| (strsim::osa_distance(key, name), *name))
        .filter(|(distance, name)| *distance <= allowed && *distance < name.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}
