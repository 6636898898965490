//! The MCP servers of an agent: started when they are needed, in the sandbox of its tools, and ended with this process.
//!
//! - [`Servers`]: all servers of the agent.
//! - `server`: one server: its connection, its restarts, its tools.
//! - `connect`: finds out which life cycle a server understands.
//! - `stdio` and `http`: the two transports; `http_client`: how much a service may answer; `limit`: how much a server may ask
//!   for at a time; `opening`: how much it may write before it has answered.
//! - `client`: what a server may ask of us: a question to the user, which `asking` passes on, as it does progress.
//! - [`worker`]: asks one server for a user, in a process of its own.
//! - `listing` and `call`: a server's tools, and one call of a tool with its `time_limit` and its `progress`; `reading`: its
//!   resources and prompts.
//!
//! Everything that a server sends is data from outside. It has limits, and it decides nothing.

mod asking;
mod call;
mod client;
mod connect;
mod error;
mod http;
mod http_client;
mod limit;
mod listing;
mod opening;
mod progress;
mod reading;
mod server;
mod stdio;
mod time_limit;
pub mod worker;

pub use call::{Answer, Cut};
pub use error::Error;

use crate::driver::ToolNews;
use agentd_core::event::McpListed;
use agentd_core::mcp::work::Piece;
use agentd_core::mcp::{self, Seen, Trouble};
use agentd_core::secrets::Secrets;
use agentd_process::task::{Confined, Limits, ShimProgram};
use asking::Asker;
use futures_util::future::join_all;
use serde_json::{Map, Value};
use server::Server;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a turn waits for a server whose tools are not known.
const PATIENCE: Duration = Duration::from_secs(mcp::PATIENCE_S);

/// How long a turn waits for a server that an earlier turn has waited for, and for the changed list of one that runs.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);

/// How long a server of an agent may take to begin: it may have to be downloaded.
pub const BEGIN: Duration = Duration::from_secs(60);

/// The same while a user waits for it.
pub const BEGIN_WATCHED: Duration = Duration::from_secs(10);

/// How long the end of all servers may take. What is left after that ends with this process.
const CLOSING: Duration = Duration::from_secs(3);

/// The most that a server's own words may contribute to an error, in bytes.
const SAID_BYTES: usize = 2000;

/// A text of a server within an error: without control sequences, and not too long.
fn short(text: &str) -> String {
    let text = agentd_core::plain::only_plain(&text[..text.floor_char_boundary(2 * SAID_BYTES)]);
    match text.len() > SAID_BYTES {
        true => format!("{}…", &text[..text.floor_char_boundary(SAID_BYTES)]),
        false => text,
    }
}

/// What all servers of an agent share.
#[derive(Clone, Debug)]
pub struct Options {
    /// The agent's working directory.
    pub cwd: PathBuf,
    /// For the files of running servers; created with mode 0700.
    pub state: PathBuf,
    /// The environment of the agent's tools.
    pub env: BTreeMap<String, String>,
    /// The sandbox of the agent's tools; `None` means no sandbox.
    pub confined: Option<Confined>,
    pub limits: Limits,
    pub secrets: Secrets,
    pub shim: ShimProgram,
    pub lab: Option<PathBuf>,
    /// How long a server may take to begin, in one attempt.
    pub begin: Duration,
}

/// The servers of one agent.
pub struct Servers {
    /// By name.
    servers: BTreeMap<String, Arc<Server>>,
    /// What calls have to say before their results, until it is taken.
    news: Mutex<Option<mpsc::UnboundedReceiver<ToolNews>>>,
}

/// A tool of a server, found by its name in requests.
#[derive(Clone)]
pub struct Target {
    server: Arc<Server>,
    /// The server's own name of the tool.
    tool: String,
}

impl Servers {
    pub fn new(settings: Vec<mcp::Server>, options: Options) -> Self {
        if !settings.is_empty() {
            stdio::remove_ended(&options.state);
        }
        let options = Arc::new(options);
        let (sender, news) = mpsc::unbounded_channel();
        let servers = settings.into_iter().map(|settings| {
            let name = settings.name.clone();
            let asker = Asker::new(&name, sender.clone(), options.secrets.clone());
            let server = Server::new(settings, Arc::clone(&options), asker);
            (name, Arc::new(server))
        });
        Self {
            servers: servers.collect(),
            news: Mutex::new(Some(news)),
        }
    }

    /// The questions and the progress of calls, once. If this is not taken, or is dropped, all questions are declined.
    pub fn news(&self) -> Option<mpsc::UnboundedReceiver<ToolNews>> {
        let mut news = self.news.lock();
        news.as_mut().ok()?.take()
    }

    /// What the journal knows about the servers.
    pub fn recall<'a>(&self, lists: impl IntoIterator<Item = &'a McpListed>) {
        for list in lists {
            if let Some(server) = self.servers.get(&list.server) {
                server.recall(list);
            }
        }
    }

    pub fn known(&self) -> Vec<mcp::Known> {
        self.servers
            .values()
            .map(|it| it.settings().known())
            .collect()
    }

    /// What the servers offer. Starts the servers whose lists are `unknown`, and waits for them for a short time. The others
    /// are mentioned only if they run and have something new.
    pub async fn list(&self, unknown: &[String]) -> Vec<Seen> {
        let looks = self.servers.values().map(|server| async {
            match unknown.contains(&server.settings().name) {
                true => Some(self.first_list(server).await),
                false => server.new_list(SHORT_PATIENCE).await,
            }
        });
        join_all(looks).await.into_iter().flatten().collect()
    }

    /// The attempt goes on in the background when the patience is over; the next turn gets its result.
    async fn first_list(&self, server: &Arc<Server>) -> Seen {
        let of = server.settings();
        let attempt = tokio::spawn({
            let server = Arc::clone(server);
            async move { server.offer().await }
        });
        let name = &of.name;
        let patience = match server.has_been_late() {
            true => SHORT_PATIENCE,
            false => PATIENCE,
        };
        let outcome = match tokio::time::timeout(patience, attempt).await {
            Ok(Ok(Ok(offer))) => Ok(offer),
            Ok(Ok(Err(error))) => Err(Trouble::Failed(server.clean(&format!(
                "The MCP server `{name}` cannot be used, so its tools are missing: {}.",
                short(&error.reason())
            )))),
            Ok(Err(_)) => Err(Trouble::Failed(format!(
                "The MCP server `{name}` cannot be used: agentd failed inside; this is a bug in agentd."
            ))),
            Err(_) => {
                server.is_late();
                Err(Trouble::Late)
            }
        };
        Seen {
            server: name.clone(),
            settings: of.settings.clone(),
            outcome,
        }
    }

    /// The tool with this name in requests; `None` if it is not known, for example because its server is no longer in the
    /// settings.
    pub fn target(&self, name: &str) -> Option<Target> {
        let server = self.servers.get(mcp::server_of(name)?)?;
        let tool = server.tool(name)?;
        let server = Arc::clone(server);
        Some(Target { server, tool })
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// The tools of one server, for a user who asks.
    pub async fn offer(&self, name: &str) -> Result<mcp::Offer, Error> {
        self.server(name)?.offer_for_sure().await
    }

    /// A resource of one server, for a user who names it.
    pub async fn read(&self, name: &str, uri: &str) -> Result<Vec<Piece>, Error> {
        self.server(name)?.read(uri).await
    }

    /// A prompt of one server, for a user who names it.
    pub async fn prompt(
        &self,
        name: &str,
        prompt: &str,
        arguments: Map<String, Value>,
    ) -> Result<String, Error> {
        self.server(name)?.prompt(prompt, arguments).await
    }

    /// A call by the server's own name of the tool, for a user who asks.
    pub fn own_target(&self, name: &str, tool: &str) -> Result<Target, Error> {
        let server = Arc::clone(self.server(name)?);
        let tool = tool.to_owned();
        Ok(Target { server, tool })
    }

    fn server(&self, name: &str) -> Result<&Arc<Server>, Error> {
        let server = self.servers.get(name);
        server.ok_or_else(|| Error::NoSuchServer(name.to_owned()))
    }

    /// Ends all servers. Takes a few seconds at most.
    pub async fn close(&self) {
        let all = join_all(self.servers.values().map(|server| server.close()));
        // A server that is just starting, or that cannot be ended, is ended by its shim when this process is gone.
        let _late = tokio::time::timeout(CLOSING, all).await;
    }
}
