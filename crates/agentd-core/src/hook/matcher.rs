//! Matchers: which tools, sources or reasons a group of handlers applies to.

use regex::Regex;

#[derive(Clone, Debug)]
pub enum Matcher {
    All,
    /// Equal to one of these.
    Exact(Vec<String>),
    /// Found anywhere in the value.
    Regex(Box<Regex>),
}

/// The names that other programs use for the same tools. Hooks files that were written for them work here too.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("shell", &["Bash", "run_shell_command"]),
    ("read_file", &["Read"]),
    ("write_file", &["Write"]),
    ("edit_file", &["Edit", "MultiEdit", "replace"]),
    (
        "apply_patch",
        &[
            "Edit",
            "Write",
            "MultiEdit",
            "replace",
            "edit_file",
            "write_file",
        ],
    ),
    ("list_files", &["Glob", "LS", "list_directory"]),
    ("search_files", &["Grep", "search_file_content"]),
    ("fetch_url", &["WebFetch", "web_fetch"]),
    ("task_output", &["BashOutput"]),
    ("task_stop", &["KillShell"]),
];

/// A tool's name, and its names in other programs.
pub fn tool_names(tool: &str) -> impl Iterator<Item = &str> {
    let others = OTHER_NAMES.iter().find(|(name, _)| *name == tool);
    let others = others.into_iter().flat_map(|(_, others)| others.iter());
    std::iter::once(tool).chain(others.copied())
}

impl Matcher {
    /// For an invalid regular expression, returns the error message.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() || text == "*" {
            return Ok(Self::All);
        }
        let is_plain = |c: char| c.is_alphanumeric() || "_- ,|".contains(c);
        if text.chars().all(is_plain) {
            let names = text.split(['|', ',']).map(str::trim);
            let names = names.filter(|name| !name.is_empty());
            return Ok(Self::Exact(names.map(str::to_owned).collect()));
        }
        let regex = Regex::new(text).map_err(|error| error.to_string())?;
        Ok(Self::Regex(Box::new(regex)))
    }

    pub fn matches(&self, subject: &str) -> bool {
        match self {
            Self::All => true,
            Self::Exact(names) => names.iter().any(|name| name == subject),
            Self::Regex(regex) => regex.is_match(subject),
        }
    }

    /// The name by which the matcher matches a tool.
    pub fn name_of<'a>(&self, tool: &'a str) -> Option<&'a str> {
        tool_names(tool).find(|name| self.matches(name))
    }
}
