//! A project's `.mcp.json`, in the format that other programs use: `{"mcpServers": {NAME: {…}}}`.

use crate::spec::McpServer;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(default)]
    mcp_servers: BTreeMap<String, Value>,
}

/// Keys of an entry that other programs use and that say nothing about the server.
const IGNORED: [&str; 5] = [
    "disabled",
    "autoApprove",
    "alwaysAllow",
    "description",
    "timeout",
];

/// What a file contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub servers: BTreeMap<String, McpServer>,
    /// The entries that cannot be used, each with the reason, for users. One of them does not make the others useless:
    /// many files have entries for other programs.
    pub skipped: Vec<String>,
}

/// The servers of a file. An error means that the file as a whole cannot be read.
pub fn parse(text: &str) -> Result<Found, String> {
    let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut found = Found::default();
    for (name, entry) in file.mcp_servers {
        if entry.get("disabled") == Some(&Value::Bool(true)) {
            continue;
        }
        match usable(&name, entry) {
            Ok(server) => {
                found.servers.insert(name, server);
            }
            Err(why) => found.skipped.push(format!("`mcpServers.{name}`: {why}")),
        }
    }
    Ok(found)
}

fn usable(name: &str, entry: Value) -> Result<McpServer, String> {
    if let Some(why) = crate::spec::refused_server_name(name) {
        return Err(why.to_owned());
    }
    let server = server(entry)?;
    let checked = server.check();
    checked.map_err(|(key, why)| format!("{key} {why}"))?;
    Ok(server)
}

fn server(mut entry: Value) -> Result<McpServer, String> {
    let Value::Object(keys) = &mut entry else {
        return Err("expected an object".to_owned());
    };
    if keys.contains_key("read_only") {
        let why = "`read_only` is for the user to say, not for a project; remove it, or copy the server to `mcp` of your \
                   agent file, or to `[agents.mcp.NAME]` of your config.toml, and set it there";
        return Err(why.to_owned());
    }
    keys.retain(|key, _| !IGNORED.contains(&key.as_str()));
    match keys.remove("type").as_ref().map(|kind| kind.as_str()) {
        None | Some(Some("stdio" | "http" | "streamable-http" | "streamableHttp")) => {}
        Some(Some("sse")) => {
            let why = "a legacy SSE server: that transport is outdated and not supported; use `http` and the URL of the newer one";
            return Err(why.to_owned());
        }
        Some(_) => return Err("`type` must be stdio or http".to_owned()),
    }
    serde_json::from_value(entry).map_err(|error| error.to_string())
}
