//! The decision of the rules about a call, and its reason as shown to the user.

use crate::spec::{Decision, Rule};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub decision: Decision,
    pub because: Because,
}

/// Why a call is allowed, asked about or denied. It is shown to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Because {
    /// A rule matches what the call is about, or a command in it.
    Rule { rule: Rule, matched: String },
    /// Each command of the line is allowed by one of these.
    Rules(Vec<Rule>),
    /// This shell text could turn into something that the rule matches at run time.
    CouldMatch { rule: Rule, text: String },
    /// The line has a command which decides at run time what it runs, and there are rules about commands.
    Opaque(String),
    /// The line cannot be parsed, and there are rules about commands.
    Unparsed,
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { rule, matched } => {
                write!(f, "the rule `{}` matches `{}`", Shown(rule), Short(matched))
            }
            Self::Rules(rules) => {
                write!(f, "each command is allowed by a rule:")?;
                for (at, rule) in rules.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma} `{}`", Shown(rule))?;
                }
                Ok(())
            }
            Self::CouldMatch { rule, text } => {
                let (text, rule) = (Short(text), Shown(rule));
                write!(f, "`{text}` could become what the rule `{rule}` matches")
            }
            Self::Opaque(what) => write!(f, "`{}` decides at run time what it runs", Short(what)),
            Self::Unparsed => f.write_str("the line cannot be parsed as shell"),
        }
    }
}

/// A rule in one line.
struct Shown<'a>(&'a Rule);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decision = match self.0.decision {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        };
        write!(f, "{decision} {}", self.0.tool)?;
        match &self.0.pattern {
            Some(pattern) => write!(f, " {}", Short(pattern)),
            None => Ok(()),
        }
    }
}

/// A text in one line, cut where it is long.
struct Short<'a>(&'a str);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_CHARS: usize = 100;
        let text = self.0.trim();
        for c in text.chars().take(MAX_CHARS) {
            // Control characters of a line must never reach the user's terminal.
            let shown = if c.is_control() { ' ' } else { c };
            write!(f, "{shown}")?;
        }
        match text.chars().nth(MAX_CHARS) {
            Some(_) => f.write_str("…"),
            None => Ok(()),
        }
    }
}
