//! The MCP servers of an agent, as a session is given them.

use super::Capabilities;
use crate::mcp::{Server, Transport};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The protocol has no working directory for servers.
const IN_DIR: &str = "cd \"$0\" && exec \"$@\"";

/// The servers that the agent can use, with their secrets. One whose settings are incomplete, or that is a service while the agent
/// does not support services, is left out.
pub fn servers(servers: &[Server], capabilities: &Capabilities) -> Vec<Value> {
    servers
        .iter()
        .filter_map(|server| {
            let transport = server.transport.as_ref().ok()?;
            let name = &server.name;
            Some(match transport {
                Transport::Stdio {
                    command,
                    args,
                    env,
                    cwd: None,
                } => json!({"name": name, "command": command, "args": args, "env": pairs(env)}),
                Transport::Stdio {
                    command,
                    args,
                    env,
                    cwd: Some(cwd),
                } => {
                    let start = ["-c", IN_DIR, cwd, command].map(str::to_owned);
                    let args: Vec<String> = start.into_iter().chain(args.iter().cloned()).collect();
                    json!({"name": name, "command": "/bin/sh", "args": args, "env": pairs(env)})
                }
                Transport::Http { .. } if !capabilities.http_servers => return None,
                Transport::Http { url, headers } => {
                    json!({"type": "http", "name": name, "url": url, "headers": pairs(headers)})
                }
            })
        })
        .collect()
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<Value> {
    map.iter()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect()
}
