//! What the user names of an agent's MCP servers in a prompt: `@server:uri` attaches a resource, and `/server:prompt a=b`
//! stands for a prompt of the server.

use crate::error::Error;
use crate::keys;
use agentd_client::Client;
use agentd_client::api::{McpGet, McpRead, NewAttachment};
use base64::Engine as _;
use serde_json::{Map, Value};

/// A prompt with what its mentions stand for.
pub struct Resolved {
    /// None if the text stays as it is.
    pub text: Option<String>,
    pub attachments: Vec<NewAttachment>,
}

/// A word that may name something of a server: the server, and the rest.
fn parts(word: &str) -> Option<(&str, &str)> {
    let (server, rest) = word.split_once(':')?;
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_name = !server.is_empty() && server.chars().all(is_of_name);
    (is_name && !rest.is_empty()).then_some((server, rest))
}

/// The prompt that the text stands for: the server, the prompt and its arguments.
fn prompt(text: &str) -> Option<(&str, &str, Map<String, Value>)> {
    let mut words = text.strip_prefix('/')?.split_whitespace();
    let (server, name) = parts(words.next()?)?;
    let pairs = words.filter_map(|word| word.split_once('='));
    let arguments = pairs.map(|(key, value)| (key.to_owned(), Value::from(value)));
    Some((server, name, arguments.collect()))
}

/// The resources that the words of a text name, each once.
fn resources(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for word in text.split_whitespace() {
        let named = word.strip_prefix('@').and_then(parts);
        found.extend(named.filter(|it| !found.contains(it)));
    }
    found
}

/// Whether a text may name something of a server, as far as its form says.
pub fn may_be_in(typed: &str) -> bool {
    prompt(typed).is_some() || !resources(typed).is_empty()
}

/// Asks the servers for what the user typed. A word that names no server of the agent is only text.
pub async fn resolve(client: &Client, agent: &str, typed: &str) -> Result<Resolved, Error> {
    let (wanted, resources) = (prompt(typed), resources(typed));
    let mut resolved = Resolved {
        text: None,
        attachments: Vec::new(),
    };
    if wanted.is_none() && resources.is_empty() {
        return Ok(resolved);
    }
    let servers = client.mcp_servers(agent).await?.servers;
    let is_there = |name: &str| servers.iter().any(|server| server.name == name);
    let env = keys::env_of(client, agent).await?;
    if let Some((server, name, arguments)) = wanted.filter(|(server, ..)| is_there(server)) {
        let get = McpGet {
            prompt: name.to_owned(),
            arguments,
            env: env.clone(),
        };
        let got = client.mcp_prompt(agent, server, &get).await?;
        resolved.text = Some(got.text);
    }
    for (server, uri) in resources.into_iter().filter(|(server, _)| is_there(server)) {
        let read = McpRead {
            uri: uri.to_owned(),
            env: env.clone(),
        };
        let pieces = client.mcp_read(agent, server, &read).await?.pieces;
        let files = pieces.into_iter().map(|piece| {
            let name = format!("{server}:{}", piece.uri);
            let bytes = match (piece.text, piece.data) {
                (Some(text), _) => text.into_bytes(),
                (None, data) => {
                    let data = data.unwrap_or_default();
                    let base64 = base64::engine::general_purpose::STANDARD;
                    base64.decode(data).unwrap_or_default()
                }
            };
            NewAttachment::of_bytes(name, &bytes)
        });
        resolved.attachments.extend(files);
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_of_this_form_are_mentions() {
        let text =
            "see @docs:file:///a.md and @docs:file:///a.md, not a@b:c @:x @x: @a.b:c http://x";
        let expected = [("docs", "file:///a.md"), ("docs", "file:///a.md,")];
        assert_eq!(resources(text), expected);
        let (server, name, arguments) = prompt("/docs:review file=a.rs deep x=1=2").unwrap();
        assert_eq!((server, name), ("docs", "review"));
        assert_eq!(
            Value::Object(arguments),
            serde_json::json!({"file": "a.rs", "x": "1=2"})
        );
        assert!(prompt("/help").is_none() && prompt("/usr/bin:x").is_none());
    }
}
