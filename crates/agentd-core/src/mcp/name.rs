//! What the tools of a server are called: `mcp__SERVER__TOOL`. Providers accept 64 letters, digits, `_` and `-`, and servers
//! use any text.

use crate::digest::sha256;
use crate::spec::MCP_PREFIX as PREFIX;
use std::collections::BTreeSet;

/// The longest name that every provider accepts.
const LONGEST: usize = 64;

/// How much of a digest distinguishes two names that are otherwise the same.
const MARK: usize = 8;

/// The names of a server's tools, in the order of the tools. They depend only on the server's name and these texts, and
/// differ from each other.
pub fn tool_names<'a>(server: &str, tools: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let names = tools.into_iter().map(|tool| {
        let plain: String = tool.chars().map(plain).collect();
        let mut name = format!("{PREFIX}{server}__{plain}");
        if name.len() > LONGEST || plain.is_empty() || !taken.insert(name.clone()) {
            name = marked(&name, tool);
            taken.insert(name.clone());
        }
        name
    });
    names.collect()
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
