//! Agent files: Markdown files whose front matter is the configuration and whose body is the system prompt.
//!
//! ```text
//! ---
//! model: some-model
//! limits:
//!   turn: {usd: 2.50}
//! ---
//!
//! You review pull requests.
//! ```
//!
//! [`parse`] reads such a file, and [`AgentSpec::to_markdown`] writes it. The front matter becomes a tree of nodes
//! that know their line numbers (`tree`), and serde reads the spec from that tree (`de`). So the structs are the only
//! list of valid keys, and every error has a line and a path.

mod approval;
mod auto_reset;
mod budget;
mod de;
mod emit;
mod error;
mod fault;
mod file;
mod keys;
mod limit_defaults;
mod limits;
mod mcp_server;
mod model;
mod notify;
mod pass;
mod passed;
mod path;
mod problem;
mod reasoning;
mod sandbox;
mod scalar;
mod server_tool;
mod stored;
mod subagent;
mod tools;
mod tree;
mod validate;
mod verbosity;
mod yaml;

pub use approval::ApprovalMode;
pub use auto_reset::AutoReset;
pub use budget::Budget;
pub use error::Error;
pub use keys::keys;
pub use limit_defaults::LimitDefaults;
pub use limits::Limits;
pub use mcp_server::{MCP_PREFIX, McpServer};
pub use model::{AgentSpec, Command, Contract, Decision, OnCrash, Restart, Rule, Runtime};
pub use notify::{Notify, Topic};
pub use pass::Pass;
pub use problem::Problem;
pub use reasoning::Reasoning;
pub use sandbox::{Network, Sandbox};
pub use server_tool::{NoServerTool, ServerTool};
pub use subagent::Subagent;
pub use tools::TOOLS;
pub use verbosity::Verbosity;

// The catalog reads its files by the same rules and returns the same errors.
pub(crate) use budget::dollars;
pub(crate) use de::from_node;
pub(crate) use mcp_server::{check_all as check_servers, refused_name as refused_server_name};
pub(crate) use notify::is_destination;
pub(crate) use path::Path;
pub(crate) use stored::read as read_stored;
pub(crate) use tree::{Entry, Kind, Node};

/// The largest spec that is read, in bytes. It contains a prompt and settings, and is stored in a journal.
pub const MAX_BYTES: usize = 256 * 1024;

/// Reads a spec: Markdown, with or without YAML front matter. Line numbers in errors are those of the file.
pub fn parse(text: &str) -> Result<AgentSpec, Error> {
    if text.len() > MAX_BYTES {
        return Err(Error::TooLarge { limit: MAX_BYTES });
    }
    let file = file::split(text)?;
    let mut spec = match tree::read(file.yaml, file.lines_before)? {
        Some(root) => from_tree(&root)?,
        None => AgentSpec::default(),
    };
    spec.system = file::system(file.body).to_owned();
    Ok(spec)
}

/// The front matter of a file; none if it has none.
pub(crate) fn front_matter(text: &str) -> Result<Option<Node>, Error> {
    let file = file::split(text)?;
    tree::read(file.yaml, file.lines_before)
}

/// The front matter of a file as it is written, and the text below it.
pub(crate) fn front_and_body(text: &str) -> Result<(&str, &str), Error> {
    let file = file::split(text)?;
    Ok((file.yaml, file::system(file.body)))
}

fn from_tree(root: &Node) -> Result<AgentSpec, Error> {
    let Kind::Map(entries) = &root.kind else {
        return Err(Error::NotAMapping);
    };
    // The JSON in the journal has this key, so serde would accept it.
    if let Some(entry) = entries.iter().find(|entry| entry.key == model::BODY) {
        return Err(Error::Invalid {
            key: Path::key(&entry.key).to_string(),
            line: entry.line,
            reason: "the system prompt is not a key: write it below the closing `---`".to_owned(),
        });
    }
    let spec: AgentSpec = de::from_node(root)?;
    spec.validate().map_err(|problem| Error::Invalid {
        line: root.line_of(&problem.path),
        key: problem.path.to_string(),
        reason: problem.reason,
    })?;
    Ok(spec)
}

#[cfg(test)]
mod tests;
