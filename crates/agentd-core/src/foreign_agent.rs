//! Subagents as Claude Code describes them in `.claude/agents`: a Markdown file with front matter, and the system prompt.

use crate::spec::{self, Kind, Node, Subagent, TOOLS};
use crate::tool_names::tool_names;

/// How long a name may be.
const LONGEST_NAME: usize = 64;

/// Why a file is no kind of subagent.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Front(#[from] spec::Error),
    #[error("it has no `description`: the model would not know when to use it")]
    NoDescription,
    #[error(
        "its name is empty, longer than 64 characters, or has other characters than letters, digits, `-` and `_`"
    )]
    Name,
}

/// Reads a file. Its name is `stem`, unless the front matter gives another. The model is that of the parent: the names that such
/// files have are those of another program.
pub fn parse(text: &str, stem: &str) -> Result<(String, Subagent), Error> {
    let (yaml, body) = spec::front_and_body(text)?;
    let front = spec::front_matter(text);
    let field = |name: &str| match &front {
        Ok(front) => words(front.as_ref()?, name),
        // Such files often have a colon in an unquoted description, and their own program reads them.
        Err(_) => by_line(yaml, name),
    };
    let one = |name: &str| Some(field(name)?.join(" ")).filter(|text| !text.is_empty());
    let description = one("description").ok_or(Error::NoDescription)?;
    let name = one("name").unwrap_or_else(|| stem.to_owned());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
        return Err(Error::Name);
    }
    let without = field("disallowedTools");
    let tools = field("tools").map(|names| own_tools(&names));
    let tools = match (tools, without) {
        (tools, Some(without)) => {
            let without = own_tools(&without);
            let all = || {
                TOOLS
                    .into_iter()
                    .filter(|tool| is_usual(tool))
                    .map(str::to_owned)
            };
            let mut tools = tools.unwrap_or_else(|| all().collect());
            tools.retain(|tool| !without.contains(tool));
            Some(tools)
        }
        (tools, None) => tools,
    };
    let subagent = Subagent {
        description: Some(description),
        tools,
        system: Some(body.to_owned()).filter(|body| !body.is_empty()),
        ..Subagent::default()
    };
    Ok((name, subagent))
}

/// Whether an agent without a list of tools has this one. Of the tools that write files, a model has what suits it.
fn is_usual(tool: &str) -> bool {
    !matches!(
        tool,
        "fetch_url" | "apply_patch" | "reset_conversation" | "agent"
    )
}

/// agentd's tools for these names, without repetition. A name that agentd does not know gives nothing: a list is a restriction.
fn own_tools(names: &[String]) -> Vec<String> {
    let mut tools: Vec<String> = Vec::new();
    for name in names {
        let name = name.split_once('(').map_or(name.as_str(), |(name, _)| name);
        let name = match name {
            "Task" | "Agent" => "agent",
            "NotebookEdit" => "Edit",
            "TodoWrite" => "update_plan",
            name => name,
        };
        let known = TOOLS.into_iter().filter(|tool| *tool != "apply_patch");
        for tool in known.filter(|tool| tool_names(tool).any(|known| known == name)) {
            if !tools.iter().any(|known| known == tool) {
                tools.push(tool.to_owned());
            }
        }
    }
    tools
}

/// The words of a key in text that is not valid YAML: the rest of its line, and the lines below it up to another key.
fn by_line(yaml: &str, key: &str) -> Option<Vec<String>> {
    let is_key = |line: &str| {
        let name = line.split_once(':').map(|(name, _)| name);
        name.is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic()))
    };
    let mut lines = yaml.lines();
    let first = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    let more = lines.take_while(|line| !is_key(line));
    let text: Vec<&str> = std::iter::once(first).chain(more).collect();
    Some(split(&text.join(" "), key))
}

/// The words of a key: a list, or a text with commas.
fn words(front: &Node, key: &str) -> Option<Vec<String>> {
    let Kind::Map(entries) = &front.kind else {
        return None;
    };
    let entry = entries.iter().find(|entry| entry.key == key)?;
    match &entry.value.kind {
        Kind::Word { text, .. } => Some(split(text, key)),
        Kind::List(items) => {
            let texts = items.iter().filter_map(|item| match &item.kind {
                Kind::Word { text, .. } => Some(split(text, key)),
                _ => None,
            });
            Some(texts.flatten().collect())
        }
        _ => None,
    }
}

fn split(text: &str, key: &str) -> Vec<String> {
    let is_list = key.to_lowercase().ends_with("tools");
    let mut depth = 0_usize;
    // A rule in a list of tools may contain spaces: `Bash(git log:*)`.
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (c.is_whitespace() && !(is_list && depth > 0)) || (is_list && c == ',')
    });
    let parts = parts.map(str::trim).filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_kind_of_subagent_with_agentds_own_tools() {
        let text = "---\nname: reviewer\ndescription: >\n  Reviews code.\n  Use it often.\ntools: Read, Grep, Bash(git log:*), Edit, WebSearch\nmodel: sonnet\ncolor: red\n---\n\nYou review.\n";
        let (name, kind) = parse(text, "file").unwrap();
        assert_eq!(name, "reviewer");
        assert_eq!(
            kind.description.as_deref(),
            Some("Reviews code. Use it often.")
        );
        let tools = kind.tools.unwrap();
        assert_eq!(tools, ["read_file", "search_files", "shell", "edit_file"]);
        assert_eq!(kind.system.as_deref(), Some("You review."));
        assert_eq!((kind.model, kind.provider), (None, None));
    }

    #[test]
    fn without_a_list_it_has_its_parents_tools_and_a_list_may_exclude() {
        let (name, kind) = parse("---\ndescription: d\n---\n", "from-file").unwrap();
        assert_eq!(
            (name.as_str(), kind.tools, kind.system),
            ("from-file", None, None)
        );
        let text = "---\ndescription: d\ndisallowedTools: [Bash, Write]\n---\n";
        let (_, kind) = parse(text, "x").unwrap();
        let tools = kind.tools.unwrap();
        assert!(tools.iter().any(|tool| tool == "read_file"));
        assert!(
            !tools
                .iter()
                .any(|tool| tool == "shell" || tool == "write_file")
        );
    }

    #[test]
    fn what_is_no_subagent_is_an_error() {
        assert_eq!(parse("Text.", "x"), Err(Error::NoDescription));
        let named = |name: &str| parse(&format!("---\nname: {name}\ndescription: d\n---\n"), "x");
        assert_eq!(named("a/b"), Err(Error::Name));
        assert_eq!(named(&"x".repeat(65)), Err(Error::Name));
        assert!(matches!(
            parse("---\ndescription: d\n", "x"),
            Err(Error::Front(_))
        ));
    }

    /// Files in the wild have descriptions that are not valid YAML.
    #[test]
    fn a_description_with_colons_is_read_as_its_own_program_reads_it() {
        let text = "---\nname: helper\ndescription: Use it when asked. Examples: <example>user: \"hi\"</example>\n  More: text.\ntools: Read, Bash\n---\nBody.\n";
        let (name, kind) = parse(text, "x").unwrap();
        assert_eq!(name, "helper");
        assert_eq!(kind.tools.unwrap(), ["read_file", "shell"]);
        let description = kind.description.unwrap();
        assert!(
            description.starts_with("Use it when asked. Examples: <example>"),
            "{description}"
        );
        assert!(description.ends_with("More: text."), "{description}");
    }
}
