//! Whether a tool call may run: the rules of an agent's spec, applied to what the call is about.
//!
//! Of all rules that match a call the strictest counts, wherever it stands: deny beats ask beats
//! allow. Where none matches, the tool's own default holds.
//!
//! In a pattern `*` is any run of characters (a `/` and nothing at all included), `?` is one
//! character, everything else is itself, and the pattern must fit the subject from end to end.
//! A rule's tool may be `*`, and a rule without a pattern is about all calls.
//!
//! A line for the shell is more than one command, so its rules lean to the safe side:
//!
//! - An *allow* pattern never lets more commands run than it shows. A line with control characters
//!   (`;` `&` `|` `<` `>` `` ` `` `$(` or a new line) matches only where the pattern is `*`, or has
//!   the very same ones in the same order: `git *` does not allow `git status; rm -rf /`.
//! - A *deny* or *ask* pattern matches the whole line, or any one command in it.
//!
//! Rules keep a model within what the user meant. They are no wall against somebody who wants to get
//! around them: the shell has more ways to write a command than any pattern knows.

mod glob;
mod line;

#[cfg(test)]
mod tests;

use crate::spec::{Decision, Rule};

/// What a call is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// One thing under each of its names, such as a file by its path from here and by its whole path.
    /// A pattern that fits one of them fits the thing.
    Names(Vec<String>),
    /// A line for the shell.
    Command(String),
}

impl Subject {
    /// Something with one name.
    pub fn name(name: impl Into<String>) -> Self {
        Self::Names(vec![name.into()])
    }
}

/// What the rules say about a call of `tool`; `default` where they say nothing.
pub fn decide(rules: &[Rule], tool: &str, subject: &Subject, default: Decision) -> Decision {
    let matching = rules.iter().filter(|rule| matches(rule, tool, subject));
    let decisions = matching.map(|rule| rule.decision);
    decisions
        .max_by_key(|decision| strictness(*decision))
        .unwrap_or(default)
}

/// The stricter one of two decisions about the same call.
pub fn stricter(one: Decision, other: Decision) -> Decision {
    match strictness(one) >= strictness(other) {
        true => one,
        false => other,
    }
}

/// What a set of rules comes to, in the words that hooks files know: `bypassPermissions` where every call runs
/// and nobody is asked, `plan` where neither files nor commands can be changed or run, `acceptEdits` where
/// only other calls than those that write files are asked about or refused, and `default` otherwise.
pub fn mode(rules: &[Rule]) -> &'static str {
    const EDITS: [&str; 2] = ["write_file", "edit_file"];
    const SHELL: &str = "shell";
    let is_restricted = |rule: &&Rule| rule.decision != Decision::Allow;
    let touches = |rule: &Rule, tool: &str| rule.tool == "*" || rule.tool == tool;
    let is_refused = |tool: &str| {
        let mut rules = rules.iter().filter(|rule| touches(rule, tool));
        rules.any(|rule| {
            let is_about_all = matches!(rule.pattern.as_deref(), None | Some("*"));
            rule.decision == Decision::Deny && is_about_all
        })
    };
    let mut restricted = rules.iter().filter(is_restricted).peekable();
    if restricted.peek().is_none() {
        return "bypassPermissions";
    }
    if EDITS.into_iter().chain([SHELL]).all(is_refused) {
        return "plan";
    }
    match restricted.any(|rule| EDITS.into_iter().any(|tool| touches(rule, tool))) {
        true => "default",
        false => "acceptEdits",
    }
}

const fn strictness(decision: Decision) -> u8 {
    match decision {
        Decision::Allow => 0,
        Decision::Ask => 1,
        Decision::Deny => 2,
    }
}

fn matches(rule: &Rule, tool: &str, subject: &Subject) -> bool {
    if rule.tool != "*" && rule.tool != tool {
        return false;
    }
    let Some(pattern) = rule.pattern.as_deref() else {
        return true;
    };
    match (subject, rule.decision) {
        (Subject::Names(names), _) => names.iter().any(|name| glob::fits(pattern, name)),
        (Subject::Command(line), Decision::Allow) => line::is_allowed_by(line, pattern),
        (Subject::Command(line), Decision::Ask | Decision::Deny) => line::is_hit_by(line, pattern),
    }
}
