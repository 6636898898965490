//! Permission rules as Claude Code writes them: `Bash(git push:*)`, `Read(./.env)`, `mcp__server__tool`. They are translated
//! into rules of agentd, and stand in `.claude/settings.json` and in the field `if` of hooks.
//!
//! A translated rule may match more calls than the original, never fewer: in a path, agentd's `*` also matches `/`.

use crate::permission::{self, Subject};
use crate::spec::{Decision, MCP_PREFIX, Rule, TOOLS};
use crate::tool_names::tool_names;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How many patterns one rule may become.
const MOST: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ForeignRule {
    tool: String,
    /// Which of the tool's calls; all without it.
    specifier: Option<String>,
}

/// Where a rule applies.
#[derive(Clone, Copy, Debug)]
pub struct RuleDirs<'a> {
    /// The project's directory: relative paths are relative to it.
    pub dir: &'a str,
    /// The user's home directory, if it is known.
    pub home: Option<&'a str>,
}

/// Why a rule cannot be translated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("it is not of the form TOOL or TOOL(…)")]
    NotARule,
    #[error("agentd has no tool `{0}`")]
    NoSuchTool(String),
    #[error("its pattern has no counterpart")]
    Pattern,
    #[error("the home directory is not known")]
    NoHome,
}

impl fmt::Display for ForeignRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.specifier {
            Some(specifier) => write!(f, "{}({specifier})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

impl From<ForeignRule> for String {
    fn from(rule: ForeignRule) -> Self {
        rule.to_string()
    }
}

impl TryFrom<String> for ForeignRule {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        Self::parse(&text)
    }
}

impl ForeignRule {
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let (tool, specifier) = match text.split_once('(') {
            Some((tool, rest)) => {
                let inner = rest.strip_suffix(')').ok_or(Error::NotARule)?;
                (tool.trim(), Some(inner.trim()))
            }
            None => (text, None),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-*".contains(c);
        if tool.is_empty() || !tool.chars().all(is_name) {
            return Err(Error::NotARule);
        }
        let specifier = specifier.filter(|text| !matches!(*text, "" | "*" | ":*" | "**"));
        Ok(Self {
            tool: tool.to_owned(),
            specifier: specifier.map(str::to_owned),
        })
    }

    /// The rules of agentd that match what this one matches.
    pub fn rules(&self, decision: Decision, dirs: RuleDirs<'_>) -> Result<Vec<Rule>, Error> {
        let specifier = self.specifier.as_deref();
        let (tools, patterns): (Vec<&str>, _) = match (self.tool.as_str(), specifier) {
            ("Bash", text) => (vec!["shell"], text.map(commands)),
            ("Read", text) => {
                let tools = vec!["read_file", "list_files", "search_files"];
                (tools, paths_of(text, dirs)?)
            }
            ("Edit" | "Write" | "MultiEdit" | "NotebookEdit", text) => {
                (vec!["write_file", "edit_file"], paths_of(text, dirs)?)
            }
            ("Glob" | "LS", text) => (vec!["list_files"], paths_of(text, dirs)?),
            ("Grep", text) => (vec!["search_files"], paths_of(text, dirs)?),
            ("WebFetch", text) => {
                let hosts = text.map(|text| text.strip_prefix("domain:").ok_or(Error::Pattern));
                (vec!["fetch_url"], hosts.transpose()?.map(addresses))
            }
            ("Task" | "Agent", text) => (vec!["agent"], text.map(|kind| vec![kind.to_owned()])),
            ("*", None) => (vec!["*"], None),
            (tool, None) if tool.starts_with(MCP_PREFIX) => {
                return Ok(vec![of_mcp(tool, decision)]);
            }
            (tool, text) if TOOLS.contains(&tool) => {
                (vec![tool], text.map(|text| vec![text.to_owned()]))
            }
            (tool, None) => {
                let mut known = TOOLS.into_iter();
                let known = known.find(|known| tool_names(known).any(|name| name == tool));
                (vec![known.ok_or_else(|| no_tool(tool))?], None)
            }
            (tool, Some(_)) => return Err(no_tool(tool)),
        };
        let each = |tool: &&str| {
            let rule = |pattern| Rule {
                tool: (*tool).to_owned(),
                pattern,
                decision,
                needs: Vec::new(),
            };
            match &patterns {
                Some(patterns) => patterns.iter().cloned().map(Some).map(rule).collect(),
                None => vec![rule(None)],
            }
        };
        Ok(tools.iter().flat_map(each).collect())
    }

    /// Whether it matches a call of this tool, which is about these subjects. A call that could match does.
    pub fn matches(
        &self,
        tool: &str,
        subjects: &[Subject],
        dirs: RuleDirs<'_>,
    ) -> Result<bool, Error> {
        let rules = self.rules(Decision::Deny, dirs)?;
        let mut subjects = subjects.iter();
        Ok(subjects.any(|subject| permission::verdict(&rules, tool, subject).is_some()))
    }
}

fn no_tool(tool: &str) -> Error {
    Error::NoSuchTool(tool.to_owned())
}

/// `mcp__server` means all tools of the server.
fn of_mcp(tool: &str, decision: Decision) -> Rule {
    let below = tool.strip_prefix(MCP_PREFIX).unwrap_or(tool);
    let tool = match below.contains("__") || below.ends_with('*') {
        true => tool.to_owned(),
        false => format!("{tool}__*"),
    };
    Rule {
        tool,
        pattern: None,
        decision,
        needs: Vec::new(),
    }
}

/// `git push:*` and `git push *` match `git push` alone and with more words, but no `git pushes`.
fn commands(text: &str) -> Vec<String> {
    let start = text.strip_suffix(":*").or(text.strip_suffix(" *"));
    match start.map(str::trim_end) {
        Some(start) => vec![start.to_owned(), format!("{start} *")],
        None => vec![text.to_owned()],
    }
}

/// Every address of a host.
fn addresses(host: &str) -> Vec<String> {
    let schemes = ["http://", "https://"].into_iter();
    let all = schemes.flat_map(|scheme| {
        ["/*", ":*"].into_iter().flat_map(move |rest| {
            let with = |user: &str| format!("{scheme}{user}{host}{rest}");
            [with(""), with("*@")]
        })
    });
    all.collect()
}

fn paths_of(text: Option<&str>, dirs: RuleDirs<'_>) -> Result<Option<Vec<String>>, Error> {
    text.map(|text| paths(text, dirs)).transpose()
}

/// Absolute patterns for a path as in an ignore file of git: `//` begins an absolute path, `~/` one in the home directory, `/`
/// and `./` one in the project. A name without `/` is meant in every directory, and a directory with all that is in it.
fn paths(text: &str, dirs: RuleDirs<'_>) -> Result<Vec<String>, Error> {
    if text.starts_with('!') || text.contains(['[', ']', '{', '}', '\\']) {
        return Err(Error::Pattern);
    }
    let project = dirs.dir.trim_end_matches('/');
    let (base, rest) = if let Some(rest) = text.strip_prefix("//") {
        ("", rest)
    } else if let Some(rest) = text.strip_prefix("~/") {
        (dirs.home.ok_or(Error::NoHome)?.trim_end_matches('/'), rest)
    } else if let Some(rest) = text.strip_prefix("./") {
        (project, rest)
    } else {
        (project, text)
    };
    let is_anchored = text.len() != rest.len() || rest.trim_end_matches('/').contains('/');
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() || parts.contains(&"..") {
        return Err(Error::Pattern);
    }
    let mut found = vec![base.to_owned()];
    if !is_anchored {
        found.push(format!("{base}/*"));
    }
    for (index, part) in parts.iter().enumerate() {
        found = match (*part, index + 1 == parts.len()) {
            ("**", true) => found.iter().map(|begin| format!("{begin}/*")).collect(),
            // No directory, or some.
            ("**", false) => {
                let some = found.iter().map(|begin| format!("{begin}/*"));
                found.iter().cloned().chain(some).collect()
            }
            (part, _) => found
                .iter()
                .map(|begin| format!("{begin}/{part}"))
                .collect(),
        };
        if found.len() > MOST {
            return Err(Error::Pattern);
        }
    }
    let below = found.iter().filter(|path| !path.ends_with("/*"));
    let below: Vec<String> = below.map(|path| format!("{path}/*")).collect();
    found.extend(below);
    Ok(found)
}

#[cfg(test)]
mod tests;
