//! The MCP servers of an editor's session, as agentd knows servers; and lending them to the agent while the session is open.

use super::problem::log;
use crate::connect;
use agent_client_protocol::v1::schema::McpServer as OfEditor;
use agentd_client::Client;
use agentd_client::api::{LendServers, LentServers};
use agentd_core::spec::McpServer;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// The longest name of a server.
const LONGEST_NAME: usize = 32;
/// How long a session waits for its servers before it is answered without them.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause before servers are lent again, when the daemon was gone.
const PAUSE: Duration = Duration::from_millis(300);

/// What an editor passes with a session.
#[derive(Clone, Default)]
pub struct Servers {
    pub usable: LentServers,
    /// Why the others are not used, for users.
    pub skipped: Vec<String>,
}

pub fn of(editor: Vec<OfEditor>) -> Servers {
    let mut all = Servers::default();
    for server in editor {
        let (name, server) = match server {
            OfEditor::Stdio(it) => {
                let env = it.env.into_iter().map(|it| (it.name, it.value));
                let server = McpServer {
                    command: Some(it.command.display().to_string()),
                    args: it.args,
                    env: env.collect(),
                    ..McpServer::default()
                };
                (it.name, server)
            }
            OfEditor::Http(it) => {
                let headers = it.headers.into_iter().map(|it| (it.name, it.value));
                let server = McpServer {
                    url: Some(it.url),
                    headers: headers.collect(),
                    ..McpServer::default()
                };
                (it.name, server)
            }
            OfEditor::Sse(it) => {
                let why = "it uses the outdated SSE transport";
                all.skip(&it.name, why);
                continue;
            }
            _ => {
                all.skip("?", "agentd does not know its transport");
                continue;
            }
        };
        let short = short(&name);
        let one = LentServers::from([(short.clone(), server.clone())]);
        match agentd_core::mcp::check_lent(&one) {
            Err(why) => all.skip(&name, &why),
            Ok(()) if all.usable.contains_key(&short) => {
                all.skip(&name, "another one has this name");
            }
            Ok(()) => drop(all.usable.insert(short, server)),
        }
    }
    all
}

impl Servers {
    fn skip(&mut self, name: &str, why: &str) {
        let skipped = format!("The MCP server `{name}` of the editor is not used: {why}.");
        self.skipped.push(skipped);
    }
}

/// A name that agentd accepts. Editors show their names to users, so they may contain anything.
fn short(name: &str) -> String {
    let plain = name.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() || c == '_' => c,
        _ => '-',
    });
    let mut short = plain.collect::<String>();
    while short.contains("__") {
        short = short.replace("__", "_");
    }
    short.truncate(LONGEST_NAME);
    short.trim_matches(['_', '-']).to_owned()
}

/// Servers that are lent to an agent until this is dropped, also to its next daemons.
pub struct Lending(AbortHandle);

impl Drop for Lending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Lends the servers to the agent. Returns when it has them, or cannot have them soon.
pub async fn lend(client: &Client, agent: &str, usable: LentServers) -> Option<Lending> {
    if usable.is_empty() {
        return None;
    }
    let (client, agent) = (client.clone(), agent.to_owned());
    let (told, is_lent) = oneshot::channel();
    let lending = tokio::task::spawn_local(async move {
        let mut told = Some(told);
        let lend = LendServers { servers: usable };
        loop {
            // A daemon that the user has stopped is not started.
            if let Ok(true) = connect::listens(client.socket()) {
                match client.lend_servers(&agent, &lend).await {
                    Ok(mut lease) => {
                        if let Some(told) = told.take() {
                            let _late = told.send(());
                        }
                        lease.ended().await;
                    }
                    Err(error) => {
                        let is_refused = matches!(error, agentd_client::Error::Problem(_));
                        log(&error.into());
                        if is_refused {
                            return;
                        }
                    }
                }
            }
            // tidy: polls for a daemon
            tokio::time::sleep(PAUSE).await;
        }
    });
    let _late = tokio::time::timeout(PATIENCE, is_lent).await;
    Some(Lending(lending.abort_handle()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_agentd_cannot_use_is_named_without_its_values() {
        let servers = json!([
            {"name": "My Files!", "command": "/bin/files", "args": ["."], "env": [{"name": "TOKEN", "value": "${X}"}]},
            {"type": "http", "name": "docs", "url": "https://x", "headers": [{"name": "A", "value": "secret"}]},
            {"type": "sse", "name": "old", "url": "https://y", "headers": [{"name": "A", "value": "secret"}]},
            {"type": "http", "name": "bad", "url": "file:///x", "headers": []},
            {"name": "docs", "command": "/bin/other", "args": [], "env": []},
            {"name": "???", "command": "/bin/other", "args": [], "env": []},
        ]);
        let servers = of(serde_json::from_value(servers).unwrap());
        let names: Vec<&String> = servers.usable.keys().collect();
        assert_eq!(names, ["My-Files", "docs"]);
        assert_eq!(servers.usable["My-Files"].env["TOKEN"], "${X}");
        assert_eq!(servers.usable["docs"].headers["A"], "secret");
        assert_eq!(servers.skipped.len(), 4, "{:#?}", servers.skipped);
        assert!(!servers.skipped.concat().contains("secret"));
    }
}
