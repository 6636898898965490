//! `mcp` of an agent file: the servers whose tools an agent has.

use super::path::Path;
use super::problem::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The names of all tools of MCP servers begin with it.
pub const MCP_PREFIX: &str = "mcp__";

/// The longest name of a server: the names of its tools begin with it.
const LONGEST_NAME: usize = 32;

/// How many servers an agent may have.
const MOST_SERVERS: usize = 32;

/// The longest time limit of a call: one day.
const LONGEST_TIMEOUT_MS: u64 = 24 * 60 * 60 * 1000;

/// An MCP server: a child process (`command`) or a service (`url`), exactly one of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpServer {
    /// The program to start. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The program's arguments. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The program's environment variables, besides those of tools. `${NAME}` stands for a variable of the user or a stored
    /// secret. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The program's working directory. Default: that of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The URL of the service. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The HTTP headers of requests to the service. `${NAME}` as in `env`. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The tools of the server that change nothing, by the names that the server gives them. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_only: Vec<String>,
    /// The time limit of a call. Default: 120000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Why a name cannot be the name of a server; none if it can.
pub(crate) fn refused_name(name: &str) -> Option<&'static str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_plain = !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(is_plain);
    let parts = name.contains("__") || name.starts_with('_') || name.ends_with('_');
    (!is_plain || parts).then_some(
        "the name of a server consists of letters, digits, - and single _ between them, at most 32",
    )
}

/// An error, for users, if an agent cannot have these servers.
pub(crate) fn check_all(servers: &BTreeMap<String, McpServer>) -> Result<(), String> {
    check(servers).map_err(|problem| problem.to_string())
}

pub(super) fn check(servers: &BTreeMap<String, McpServer>) -> Result<(), Problem> {
    if servers.len() > MOST_SERVERS {
        let reason = "expected at most 32 servers";
        return Err(Problem::new(Path::key("mcp"), reason));
    }
    for (name, server) in servers {
        let path = Path::key("mcp").then(name);
        if let Some(reason) = refused_name(name) {
            return Err(Problem::new(path, reason));
        }
        if let Err((key, reason)) = server.check() {
            let path = match key {
                "" => path,
                key => path.then(key),
            };
            return Err(Problem::new(path, reason));
        }
    }
    Ok(())
}

impl McpServer {
    /// What is wrong with it: the key (empty for the whole entry) and the reason.
    pub(crate) fn check(&self) -> Result<(), (&'static str, &'static str)> {
        match (&self.command, &self.url) {
            (Some(_), Some(_)) => {
                return Err(("", "it has both `command` and `url`; remove one of the two"));
            }
            (None, None) => {
                return Err(("", "it has neither `command` nor `url`; add one of the two"));
            }
            (Some(command), None) if command.is_empty() => {
                let reason = "expected a path, or a name to look for in PATH";
                return Err(("command", reason));
            }
            _ => {}
        }
        let not_started = "agentd does not start a server with a `url`; remove them";
        let is_service = self.url.is_some();
        let of_program = [
            ("args", !self.args.is_empty()),
            ("env", !self.env.is_empty()),
            ("cwd", self.cwd.is_some()),
        ];
        for (key, is_given) in of_program {
            if is_service && is_given {
                return Err((key, not_started));
            }
        }
        if !is_service && !self.headers.is_empty() {
            let reason =
                "a server with a `command` gets no HTTP headers; remove them, or use `env`";
            return Err(("headers", reason));
        }
        if let Some(url) = &self.url
            && !["http://", "https://", "${"]
                .iter()
                .any(|begin| url.starts_with(begin))
        {
            return Err(("url", "expected an http:// or https:// URL"));
        }
        match self.timeout_ms {
            Some(0) => Err(("timeout_ms", "expected more than 0")),
            Some(limit) if limit > LONGEST_TIMEOUT_MS => {
                Err(("timeout_ms", "expected at most 86400000, a day"))
            }
            _ => Ok(()),
        }
    }
}
