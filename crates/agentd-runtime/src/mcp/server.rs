//! One server: connected when it is needed, and again after it has died, with growing pauses.

use super::asking::Asker;
use super::call::{Answer, Calling, Cut};
use super::connect::{Connection, Expected, connect};
use super::{Error, Options, Target, listing, reading};
use agentd_core::event::{McpListed, McpTool};
use agentd_core::id::CallId;
use agentd_core::mcp::work::Piece;
use agentd_core::mcp::{self, Offer, Seen};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A connection that lasted this long was a success: the pauses begin anew.
const STABLE: Duration = Duration::from_secs(60);

pub(super) struct Server {
    settings: mcp::Server,
    options: Arc<Options>,
    link: Mutex<Link>,
    known: StdMutex<Known>,
    asker: Asker,
    /// A turn has waited for it in vain: the next ones wait only briefly.
    late: AtomicBool,
    /// Ends an attempt to connect when the server is closed.
    closing: watch::Sender<bool>,
}

#[derive(Default)]
struct Link {
    connection: Option<(Arc<Connection>, Instant)>,
    failures: u32,
    /// The last failure, and when the next attempt may be made.
    last: Option<(Error, Instant)>,
    is_closed: bool,
}

/// What is known without a connection.
#[derive(Default)]
struct Known {
    /// The server's own names of its tools, by their names in requests. A tool that the server no longer has stays: the
    /// model may still call it, and the server's answer says so.
    tools: BTreeMap<String, String>,
    expected: Expected,
}

impl Server {
    pub fn new(settings: mcp::Server, options: Arc<Options>, asker: Asker) -> Self {
        Self {
            settings,
            options,
            link: Mutex::default(),
            known: StdMutex::default(),
            asker,
            late: AtomicBool::new(false),
            closing: watch::Sender::new(false),
        }
    }

    pub fn has_been_late(&self) -> bool {
        self.late.load(Ordering::Relaxed)
    }

    pub fn is_late(&self) {
        self.late.store(true, Ordering::Relaxed);
    }

    pub const fn settings(&self) -> &mcp::Server {
        &self.settings
    }

    /// Without secrets.
    pub fn clean(&self, text: &str) -> String {
        self.options.secrets.redact(text)
    }

    /// The list is written to the journal.
    fn without_secrets(&self, tools: Vec<McpTool>) -> Vec<McpTool> {
        let secrets = &self.options.secrets;
        // A tool cannot be called by another name than its own.
        let tools = tools
            .into_iter()
            .filter(|tool| secrets.redact(&tool.name) == tool.name);
        let tools = tools.map(|tool| McpTool {
            name: tool.name,
            description: secrets.redact(&tool.description),
            parameters: secrets.redact_json(tool.parameters),
        });
        tools.collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn recall(&self, list: &McpListed) {
        if list.settings != self.settings.settings {
            return;
        }
        self.learn(list.tools.iter().map(|tool| tool.name.as_str()));
        if let Some(life_cycle) = list.life_cycle {
            self.known().expected = Expected::LifeCycle(life_cycle);
        }
    }

    fn learn<'a>(&self, tools: impl Iterator<Item = &'a str> + Clone) {
        let names = mcp::tool_names(&self.settings.name, tools.clone());
        let pairs = names.into_iter().zip(tools.map(str::to_owned));
        self.known().tools.extend(pairs);
    }

    /// The server's own name of a tool.
    pub fn tool(&self, name: &str) -> Option<String> {
        self.known().tools.get(name).cloned()
    }

    /// The connection, which is made first if there is none. Concurrent callers share one attempt.
    async fn connection(&self) -> Result<Arc<Connection>, Error> {
        let mut link = self.link.lock().await;
        if link.is_closed {
            return Err(Error::Closed);
        }
        if let Some((connection, since)) = link.connection.take() {
            if connection.is_open() {
                let found = Arc::clone(&connection);
                link.connection = Some((connection, since));
                return Ok(found);
            }
            let how = connection.close().await;
            match since.elapsed() >= STABLE {
                true => link.failures = 0,
                false => link.failures += 1,
            }
            // The first restart is immediate.
            let failures = link.failures.saturating_sub(1);
            link.failed(Error::Ended(how), failures);
        }
        if let Some((last, next)) = &link.last
            && let wait = next.saturating_duration_since(Instant::now())
            && !wait.is_zero()
        {
            let last = last.to_string();
            return Err(Error::Waiting { last, wait });
        }
        let transport = self.settings.transport.as_ref();
        let transport = transport.map_err(|text| Error::Settings(text.clone()))?;
        let expected = self.known().expected;
        let mut closing = self.closing.subscribe();
        let connected = tokio::select! {
            biased;
            // What the attempt has started is killed.
            _ = closing.wait_for(|is_closing| *is_closing) => return Err(Error::Closed),
            connected = connect(transport, expected, &self.options, &self.asker) => connected,
        };
        match connected {
            Ok(connection) => {
                let connection = Arc::new(connection);
                self.known().expected = connection.expected;
                link.connection = Some((Arc::clone(&connection), Instant::now()));
                Ok(connection)
            }
            Err(error) => {
                link.failures += 1;
                let failures = link.failures;
                link.failed(error.clone(), failures);
                Err(error)
            }
        }
    }

    /// Connects if needed, and lists the tools.
    pub async fn offer(&self) -> Result<Offer, Error> {
        let connection = self.connection().await?;
        connection.take_changed();
        let tools = self.without_secrets(listing::tools(&connection).await?);
        self.learn(tools.iter().map(|tool| tool.name.as_str()));
        let life_cycle = connection.life_cycle;
        Ok(Offer { life_cycle, tools })
    }

    /// The same for a user who asks. If the server was perhaps too slow for the probe, it is started and probed once more.
    pub async fn offer_for_sure(&self) -> Result<Offer, Error> {
        let offer = self.offer().await?;
        if !matches!(self.known().expected, Expected::Slow(_)) {
            return Ok(offer);
        }
        if let Some((connection, _)) = self.link.lock().await.connection.take() {
            connection.close().await;
        }
        Ok(self.offer().await.unwrap_or(offer))
    }

    /// The list of a server that runs, if the server said that it has changed.
    pub async fn new_list(&self, limit: Duration) -> Option<Seen> {
        let open = {
            let link = self.link.try_lock().ok()?;
            link.connection.as_ref().map(|(open, _)| Arc::clone(open))?
        };
        if !open.is_open() || !open.take_changed() {
            return None;
        }
        let tools = tokio::time::timeout(limit, listing::tools(&open)).await;
        let Ok(Ok(tools)) = tools else {
            // The next turn looks again.
            open.mark_changed();
            return None;
        };
        let tools = self.without_secrets(tools);
        self.learn(tools.iter().map(|tool| tool.name.as_str()));
        let life_cycle = open.life_cycle;
        Some(Seen {
            server: self.settings.name.clone(),
            settings: self.settings.settings.clone(),
            outcome: Ok(Offer { life_cycle, tools }),
        })
    }

    pub async fn read(&self, uri: &str) -> Result<Vec<Piece>, Error> {
        let limit = Duration::from_millis(self.settings.timeout_ms);
        let connection = self.connection().await?;
        reading::resource(&connection, uri, limit).await
    }

    pub async fn prompt(&self, name: &str, arguments: Map<String, Value>) -> Result<String, Error> {
        let limit = Duration::from_millis(self.settings.timeout_ms);
        let connection = self.connection().await?;
        reading::prompt(&connection, name, arguments, limit).await
    }

    pub async fn close(&self) {
        self.closing.send_replace(true);
        let mut link = self.link.lock().await;
        link.is_closed = true;
        if let Some((connection, _)) = link.connection.take() {
            connection.close().await;
        }
    }
}

impl Link {
    /// The next attempt may be made after a pause of 0 s, 1 s, 2 s, 4 s and so on, for 0, 1, 2, 3 failures.
    fn failed(&mut self, error: Error, failures: u32) {
        let pause = match failures.min(16) {
            0 => Duration::ZERO,
            n => Duration::from_secs(1 << (n - 1)).min(LONGEST_PAUSE),
        };
        self.last = Some((error, Instant::now() + pause));
    }
}

impl Target {
    /// Whether the user has marked the tool as one that changes nothing.
    pub fn is_read_only(&self) -> bool {
        self.server.settings.read_only.contains(&self.tool)
    }

    /// The server's own name of the tool.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    pub fn server(&self) -> &str {
        &self.server.settings.name
    }

    /// Calls the tool. The server is started first if it does not run.
    pub async fn call(
        &self,
        call: &CallId,
        arguments: Map<String, Value>,
        cancelled: impl Future<Output = ()>,
    ) -> Result<Answer, Cut> {
        let limit = Duration::from_millis(self.server.settings.timeout_ms);
        let mut cancelled = std::pin::pin!(cancelled);
        // In a task of its own: an interrupt does not abandon a half-made connection.
        let connecting = tokio::spawn({
            let server = Arc::clone(&self.server);
            async move { server.connection().await }
        });
        let connection = tokio::select! {
            biased;
            () = &mut cancelled => return Err(Cut::Cancelled),
            connection = tokio::time::timeout(limit, connecting) => connection,
        };
        let name = self.server();
        let connection = match connection {
            Ok(Ok(Ok(connection))) => connection,
            Ok(Ok(Err(error))) => {
                let text = format!(
                    "The call was not sent. The MCP server `{name}` cannot be used: {error}."
                );
                return Err(Cut::Refused(text));
            }
            Ok(Err(_)) => return Err(Cut::Refused("agentd failed inside.".to_owned())),
            Err(_) => {
                let text = format!(
                    "The call was not sent: the MCP server `{name}` was not ready in time."
                );
                return Err(Cut::Refused(text));
            }
        };
        let asker = &self.server.asker;
        let running = asker.runs(call.clone());
        let calling = Calling {
            connection: &connection,
            asker,
            running: &running,
            tool: &self.tool,
            limit,
        };
        calling.call(arguments, cancelled).await
    }
}
