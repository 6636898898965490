//! What the tools of a server are called: `mcp__SERVER__TOOL`. Providers accept 64 letters, digits, `_` and `-`, and servers
//! use any text.

use crate::digest::sha256;
use crate::spec::MCP_PREFIX as PREFIX;
use std::collections::{BTreeMap, BTreeSet};

/// The longest name that every provider accepts.
const LONGEST: usize = 64;

/// How much of a digest distinguishes two names that are otherwise the same.
const MARK: usize = 8;

/// The names of a server's tools, in the order of the tools. They depend on the server's name and on which tools there are,
/// not on their order, and differ from each other. A tool whose own name is accepted keeps it; others yield to it.
pub fn tool_names<'a>(server: &str, tools: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let tools: Vec<&str> = tools.into_iter().collect();
    let named = |tool: &str| {
        let plain: String = tool.chars().map(plain).collect();
        format!("{PREFIX}{server}__{plain}")
    };
    let mut sharing: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for tool in &tools {
        sharing.entry(named(tool)).or_default().insert(tool);
    }
    let is_own = |tool: &str| !tool.is_empty() && tool.chars().all(|c| plain(c) == c);
    let wanted = |tool: &str| {
        let name = named(tool);
        let is_shared = sharing.get(&name).is_some_and(|tools| tools.len() > 1);
        match name.len() > LONGEST || tool.is_empty() || (is_shared && !is_own(tool)) {
            true => marked(&name, tool),
            false => name,
        }
    };
    let mut names: Vec<Option<String>> = vec![None; tools.len()];
    let mut taken = BTreeSet::new();
    for is_first in [true, false] {
        let fitting = tools.iter().enumerate();
        for (at, tool) in fitting.filter(|(_, tool)| is_own(tool) == is_first) {
            let mut name = wanted(tool);
            // A tool that is listed twice, or whose name was chosen to be that of another one.
            while !taken.insert(name.clone()) {
                name = marked(&name, &format!("{name} {tool}"));
            }
            names[at] = Some(name);
        }
    }
    names.into_iter().flatten().collect()
}

const fn plain(c: char) -> char {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => c,
        _ => '_',
    }
}

/// The beginning of the name, with a digest of the tool's own name in place of the rest. The name is ASCII.
fn marked(name: &str, tool: &str) -> String {
    let digest = sha256(tool.as_bytes());
    let mark: String = digest.chars().take(MARK).collect();
    let begin: String = name.chars().take(LONGEST - MARK - 1).collect();
    format!("{begin}_{mark}")
}

/// The server that a tool belongs to, by its name in requests. A server's name contains no `__`.
pub fn server_of(name: &str) -> Option<&str> {
    let (server, _) = name.strip_prefix(PREFIX)?.split_once("__")?;
    Some(server)
}
