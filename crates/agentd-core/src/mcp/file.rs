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

/// The servers of a file. An error names the entry and what is wrong with it.
pub fn parse(text: &str) -> Result<BTreeMap<String, McpServer>, String> {
    let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut servers = BTreeMap::new();
    for (name, entry) in file.mcp_servers {
        let refused = |why: &str| format!("`mcpServers.{name}`: {why}");
        if let Some(why) = crate::spec::refused_server_name(&name) {
            return Err(refused(why));
        }
        if entry.get("disabled") == Some(&Value::Bool(true)) {
            continue;
        }
        let server = server(entry).map_err(|why| refused(&why))?;
        let checked = server.check();
        checked.map_err(|(key, why)| refused(&format!("{key} {why}")))?;
        servers.insert(name, server);
    }
    Ok(servers)
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
            let why = "the SSE transport is outdated and not supported; use `http` and the URL of the newer one";
            return Err(why.to_owned());
        }
        Some(_) => return Err("`type` must be stdio or http".to_owned()),
    }
    serde_json::from_value(entry).map_err(|error| error.to_string())
}
