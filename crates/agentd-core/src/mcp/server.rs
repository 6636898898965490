//! The settings of a server with all references replaced.

use super::reference::replaced;
use crate::digest::sha256;
use crate::secrets::Secrets;
use crate::spec::{AgentSpec, McpServer};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The time limit of a call if the settings name none.
pub const DEFAULT_TIMEOUT_MS: u64 = 120_000;

/// One server, ready to be used. Its values are in memory only.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    pub name: String,
    pub source: Source,
    /// How to reach it; an error is for users, and says what is missing.
    pub transport: Result<Transport, String>,
    /// The tools that change nothing, by the user's own word, as the server calls them.
    pub read_only: BTreeSet<String>,
    pub timeout_ms: u64,
    /// Identifies the settings. A list of tools that was made with other settings does not count.
    pub settings: String,
}

/// Where the settings of a server come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The agent's settings, which include the defaults of the user's file.
    Agent,
    /// A trusted `.mcp.json`.
    Project,
    /// A client lends it, for as long as it is connected: the editor of a session.
    Lent,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    Stdio {
        /// A path, or a name to look for in the `PATH` of the tools.
        command: String,
        args: Vec<String>,
        /// In addition to the environment of tools.
        env: BTreeMap<String, String>,
        /// `None` means the agent's working directory.
        cwd: Option<String>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
    },
}

/// A server as the turn machine knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub name: String,
    pub settings: String,
    /// See [`Server::read_only`].
    pub read_only: BTreeSet<String>,
}

impl Server {
    pub fn known(&self) -> Known {
        Known {
            name: self.name.clone(),
            settings: self.settings.clone(),
            read_only: self.read_only.clone(),
        }
    }
}

/// The program or the URL, for users: no argument and no value.
impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, .. } => f.write_str(command),
            Self::Http { url, .. } => f.write_str(url.split(['?', '#']).next().unwrap_or(url)),
        }
    }
}

/// Values may be secrets.
impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transport({self})")
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.name)
            .field("source", &self.source)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

/// All servers of an agent, sorted by name. An agent's own entry takes precedence over one of the same name that is lent, and
/// that over one in a project's file. A project's entry gets none of the variables that are `withheld` from it, and what is
/// lent is taken as it is. `value_of` returns the value of a variable of the user or of a stored secret.
pub fn resolve(
    agent: &BTreeMap<String, McpServer>,
    lent: &BTreeMap<String, McpServer>,
    project: &BTreeMap<String, McpServer>,
    withheld: &BTreeSet<String>,
    value_of: &dyn Fn(&str) -> Option<String>,
) -> Vec<Server> {
    let mut all: BTreeMap<&String, (Source, &McpServer)> = BTreeMap::new();
    all.extend(
        project
            .iter()
            .map(|(name, it)| (name, (Source::Project, it))),
    );
    all.extend(lent.iter().map(|(name, it)| (name, (Source::Lent, it))));
    all.extend(agent.iter().map(|(name, it)| (name, (Source::Agent, it))));
    let servers = all.into_iter().map(|(name, (source, entry))| Server {
        name: name.clone(),
        source,
        transport: match source {
            Source::Agent => transport(entry, value_of),
            Source::Lent => as_it_is(entry),
            Source::Project => may_refer(entry, withheld).and_then(|()| transport(entry, value_of)),
        },
        read_only: entry.read_only.iter().cloned().collect(),
        timeout_ms: entry.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS),
        settings: settings(entry),
    });
    servers.collect()
}

/// The servers that clients lend, as one text that changes with them. It is in memory only: it is made of secrets too.
pub fn lent_digest(lent: &BTreeMap<String, McpServer>) -> Option<String> {
    if lent.is_empty() {
        return None;
    }
    let text = serde_json::to_string(lent).unwrap_or_default();
    Some(sha256(text.as_bytes()))
}

/// An error, for users, if servers cannot be lent with these settings.
pub fn check_lent(lent: &BTreeMap<String, McpServer>) -> Result<(), String> {
    crate::spec::check_servers(lent)
}

/// A `$` in what is lent is only a character.
fn as_it_is(entry: &McpServer) -> Result<Transport, String> {
    match (entry.command.clone(), entry.url.clone()) {
        (Some(command), _) => Ok(Transport::Stdio {
            command,
            args: entry.args.clone(),
            env: entry.env.clone(),
            cwd: entry.cwd.clone(),
        }),
        (None, Some(url)) => Ok(Transport::Http {
            url,
            headers: entry.headers.clone(),
        }),
        (None, None) => Err("it has neither `command` nor `url`".to_owned()),
    }
}

fn transport(
    entry: &McpServer,
    value_of: &dyn Fn(&str) -> Option<String>,
) -> Result<Transport, String> {
    let missing = |name: String| {
        format!("the variable {name} is not set; store it with `agentd secret set {name}`")
    };
    let text = |text: &String| replaced(text, value_of).map_err(missing);
    let map = |map: &BTreeMap<String, String>| {
        let pairs = map.iter();
        let pairs = pairs.map(|(name, value)| Ok((name.clone(), text(value)?)));
        pairs.collect::<Result<BTreeMap<_, _>, String>>()
    };
    match (&entry.command, &entry.url) {
        (Some(command), _) => Ok(Transport::Stdio {
            command: text(command)?,
            args: entry.args.iter().map(text).collect::<Result<_, _>>()?,
            env: map(&entry.env)?,
            cwd: entry.cwd.as_ref().map(text).transpose()?,
        }),
        (None, Some(url)) => Ok(Transport::Http {
            url: text(url)?,
            headers: map(&entry.headers)?,
        }),
        (None, None) => Err("it has neither `command` nor `url`".to_owned()),
    }
}

/// A digest of what decides which server it is. Values of variables and headers are left out: they may be secrets, and
/// the digest is in the journal.
fn settings(entry: &McpServer) -> String {
    let names = |map: &BTreeMap<String, String>| map.keys().cloned().collect::<Vec<_>>();
    let parts = (
        (&entry.command, &entry.args, names(&entry.env), &entry.cwd),
        (&entry.url, names(&entry.headers)),
    );
    let text = serde_json::to_string(&parts).unwrap_or_default();
    sha256(text.as_bytes()).chars().take(16).collect()
}

/// The values of servers that must not appear in a text: headers, variables whose names look like secrets, and what a URL
/// has as its password or query.
pub fn secrets(servers: &[Server]) -> Vec<String> {
    let mut values = Vec::new();
    for server in servers {
        match &server.transport {
            Ok(Transport::Stdio { env, .. }) => {
                values.extend(Secrets::of_env(env, &BTreeSet::new()).values());
            }
            Ok(Transport::Http { url, headers }) => {
                // Errors of the connection contain the URL.
                let address = BTreeMap::from([("url".to_owned(), url.clone())]);
                values.extend(Secrets::of_env(&address, &BTreeSet::new()).values());
                let query = url.split_once('?').map_or("", |(_, query)| query);
                let pairs = query.split(['&', '#']);
                let in_query = pairs.filter_map(|pair| pair.split_once('='));
                values.extend(in_query.map(|(_, value)| value.to_owned()));
                // `Bearer TOKEN`: the token may appear alone.
                let parts = headers.values().flat_map(|value| {
                    let last = value.rsplit(' ').next().unwrap_or(value);
                    [value.clone(), last.to_owned()]
                });
                values.extend(parts);
            }
            Err(_) => {}
        }
    }
    values
}

/// A project's file may not send the user's secrets to an address of its choice.
fn may_refer(entry: &McpServer, withheld: &BTreeSet<String>) -> Result<(), String> {
    let names = references_of(entry);
    match names.intersection(withheld).next() {
        None => Ok(()),
        Some(name) => Err(format!(
            "`.mcp.json` refers to {name}, which is the key of a provider or a stored secret, and your own settings do not \
             name it; to let the project have it, add {name} to `pass_env` of the agent, or copy the server to the agent's `mcp`"
        )),
    }
}

/// Of these names of secrets, those that the user's own settings do not name: a project's file may not refer to them.
pub fn withheld(spec: &AgentSpec, mut secrets: BTreeSet<String>) -> BTreeSet<String> {
    let mut named = references(&spec.mcp);
    named.extend(spec.pass_env.iter().cloned());
    named.extend(spec.env.values().flat_map(|text| names_in(text)));
    secrets.retain(|name| !named.contains(name));
    secrets
}

/// The names of the variables that the settings of these servers refer to.
pub fn references(servers: &BTreeMap<String, McpServer>) -> BTreeSet<String> {
    servers.values().flat_map(references_of).collect()
}

fn references_of(entry: &McpServer) -> BTreeSet<String> {
    let texts = entry.args.iter().chain(entry.env.values());
    let texts = texts.chain(entry.headers.values()).chain(&entry.command);
    let texts = texts.chain(&entry.url).chain(&entry.cwd);
    texts.flat_map(|text| names_in(text)).collect()
}

fn names_in(text: &str) -> Vec<String> {
    let seen = std::cell::RefCell::new(Vec::new());
    // Every reference is looked up once, and found.
    let _whole = replaced(text, &|name| {
        seen.borrow_mut().push(name.to_owned());
        Some(String::new())
    });
    seen.into_inner()
}
