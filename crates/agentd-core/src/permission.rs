//! Whether a tool call may run: the rules of an agent's spec, applied to what the call is about.
//!
//! Of all rules that match a call, the strictest one applies, whatever their order: deny beats ask, and ask beats
//! allow. If no rule matches, the tool's own default applies.
//!
//! In a pattern `*` is any run of characters (a `/` and nothing at all included), `?` is one
//! character, everything else is itself, and the pattern must fit the subject from end to end.
//! A rule's tool may be `*`, and a rule without a pattern is about all calls.
//!
//! A line for the shell is parsed, and its rules are about the simple commands in it, wherever they stand: in
//! lists, pipelines, loops, substitutions, here-documents, and in the arguments of `env`, `xargs`, `sh -c` and
//! their like. Quotes are removed first. The rules lean to the safe side:
//!
//! - *Allow* rules cover a line if together they cover each command of it. A `*` may stand for a word that is only
//!   known at run time (`git log $x`), but not for an assignment before a command or a file that is written to:
//!   the pattern must show these. A command that another one runs must be covered too. The pattern `*` covers any
//!   line.
//! - A *deny* or *ask* rule matches the whole line as text, or any command in it, with or without the path of
//!   its program.
//! - A line that cannot be parsed, or in which it is decided at run time what is run (`eval`, `$x`, `… | sh`), is
//!   covered by no allow pattern but `*`. Where there are deny or ask patterns, it is at least asked about.
//!
//! Rules keep a model within what the user meant. They are no boundary: a program that a rule allows can run others
//! in ways that no line shows (`make`, `python -c`). The sandbox is the boundary.

mod commands;
mod glob;
mod shell;
mod verdict;

#[cfg(test)]
mod tests;

pub use verdict::{Because, Verdict};

use crate::patch::{self, Change};
use crate::spec::{Decision, MCP_PREFIX, Rule};

/// The tools that write files.
const EDITS: [&str; 2] = ["write_file", "edit_file"];

/// What a call is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// One thing with all its names, such as a file with its relative and its absolute path. A pattern that matches
    /// one of the names matches the thing.
    Names(Vec<String>),
    /// A file that a patch changes, with all its names.
    Patched { names: Vec<String>, change: Change },
    /// A line for the shell.
    Command(String),
}

impl Subject {
    /// A thing with one name.
    pub fn name(name: impl Into<String>) -> Self {
        Self::Names(vec![name.into()])
    }
}

/// The decision of the rules about a call of `tool`, or `default` if no rule matches.
pub fn decide(rules: &[Rule], tool: &str, subject: &Subject, default: Decision) -> Decision {
    verdict(rules, tool, subject).map_or(default, |verdict| verdict.decision)
}

/// The decision of the rules about a call of `tool`, and why. `None` if no rule matches.
pub fn verdict(rules: &[Rule], tool: &str, subject: &Subject) -> Option<Verdict> {
    let is_about_tool = |rule: &&Rule| applies_to(&rule.tool, tool);
    let rules: Vec<&Rule> = rules.iter().filter(is_about_tool).collect();
    match subject {
        Subject::Command(line) => commands::verdict(&rules, line),
        Subject::Names(names) => strictest(rules, names),
        Subject::Patched { names, change } => {
            let covers = |rule: &&Rule| rule.decision != Decision::Allow || allows(rule, *change);
            strictest(rules.into_iter().filter(covers), names)
        }
    }
}

fn strictest<'a>(rules: impl IntoIterator<Item = &'a Rule>, names: &[String]) -> Option<Verdict> {
    let rules = rules.into_iter();
    let matching = rules.filter_map(|rule| Some((rule, matching_name(rule, names)?)));
    let (rule, name) = matching.max_by_key(|(rule, _)| strictness(rule.decision))?;
    Some(Verdict {
        decision: rule.decision,
        because: Because::Rule {
            rule: rule.clone(),
            matched: name.to_owned(),
        },
    })
}

/// Whether an allow rule is about such a change of a patch: a user who allows a tool has not allowed what the tool cannot
/// do.
fn allows(rule: &Rule, change: Change) -> bool {
    match rule.tool.as_str() {
        "edit_file" => change == Change::Update,
        "write_file" => change == Change::Write,
        _ => true,
    }
}

/// Whether rules with this name apply to calls of a tool. The name of tools of MCP servers may be a pattern. A patch changes and creates files, so the rules of both file
/// tools apply to it, those that allow only to the same kind of change.
fn applies_to(name: &str, tool: &str) -> bool {
    let by_other_name = tool == patch::TOOL && EDITS.contains(&name);
    let of_server = tool.starts_with(MCP_PREFIX) && name.starts_with(MCP_PREFIX);
    let by_pattern = of_server && glob::fits(name, tool);
    name == "*" || name == tool || by_other_name || by_pattern
}

/// The stricter one of two decisions about the same call.
pub fn stricter(one: Decision, other: Decision) -> Decision {
    match strictness(one) >= strictness(other) {
        true => one,
        false => other,
    }
}

/// A set of rules as one of the modes that hooks files know: `bypassPermissions` if every call runs without an
/// approval, `plan` if neither files can be changed nor commands run, `acceptEdits` if only calls that do not write
/// files are asked about or refused, and `default` otherwise.
pub fn mode(rules: &[Rule]) -> &'static str {
    const SHELL: &str = "shell";
    let is_restricted = |rule: &&Rule| rule.decision != Decision::Allow;
    let touches = |rule: &Rule, tool: &str| applies_to(&rule.tool, tool);
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
    let edits = || EDITS.into_iter().chain([patch::TOOL]);
    match restricted.any(|rule| edits().any(|tool| touches(rule, tool))) {
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

fn matching_name<'a>(rule: &Rule, names: &'a [String]) -> Option<&'a str> {
    let mut names = names.iter().map(String::as_str);
    match rule.pattern.as_deref() {
        Some(pattern) => names.find(|name| glob::fits(pattern, name)),
        None => Some(names.next().unwrap_or_default()),
    }
}
