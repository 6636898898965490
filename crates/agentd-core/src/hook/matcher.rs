//! Matchers: which tools, sources or reasons a group of handlers applies to.

use crate::tool_names::tool_names;
use regex::Regex;

#[derive(Clone, Debug)]
pub enum Matcher {
    All,
    /// Equal to one of these.
    Exact(Vec<String>),
    /// Found anywhere in the value.
    Regex(Box<Regex>),
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
