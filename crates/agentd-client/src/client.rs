//! The typed client: one method per route.

mod backups;
mod bindings;
mod files;
mod hooks;
mod mcp;
mod schedules;
mod secrets;
mod tasks;
mod transport;
mod trust;
mod upload;

pub use mcp::Lease;

use crate::api::*;
use crate::error::Error;
use crate::events::Events;
use crate::retry::Retry;
use agentd_core::event::Event;
use agentd_core::id::{ApprovalId, OpId, Seq};
use agentd_core::spec::AgentSpec;
use bytes::Bytes;
use hyper::Method;
use std::fmt;
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use transport::{Again, Content, escaped, of, with_query};
use upload::Upload;

/// A client of the daemon that listens on one socket. Each request has its own connection.
#[derive(Clone)]
pub struct Client {
    socket: PathBuf,
    failpoints: Option<Failpoints>,
    retry: Option<Arc<dyn Retry>>,
    /// An open connection for the next request. Shared by all clones, so that only one request uses it.
    stream: Arc<Mutex<Option<UnixStream>>>,
    /// The op of the next change; generated if there is none.
    op: Option<OpId>,
    /// See [`Client::with_any_daemon`].
    serves_anybody: bool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

/// Called before a request and after its answer, only in the lab, with the parts of a failpoint's name.
pub type Failpoints = fn(&str, &str, &str);

impl Client {
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self {
            socket: socket.into(),
            failpoints: None,
            retry: None,
            stream: Arc::default(),
            op: None,
            serves_anybody: false,
        }
    }

    pub const fn with_failpoints(mut self, failpoints: Option<Failpoints>) -> Self {
        self.failpoints = failpoints;
        self
    }

    /// With `true`, an injected bug: the client also uses a daemon of another user.
    #[doc(hidden)]
    pub const fn with_any_daemon(mut self, is_any: bool) -> Self {
        self.serves_anybody = is_any;
        self
    }

    /// Uses this connection for the next request.
    pub fn with_stream(mut self, stream: Option<UnixStream>) -> Self {
        self.stream = Arc::new(Mutex::new(stream));
        self
    }

    /// Sends requests that are not answered again, for as long as `retry` returns. A change gets a generated op if it
    /// has none.
    pub fn with_retry(mut self, retry: Arc<dyn Retry>) -> Self {
        self.retry = Some(retry);
        self
    }

    /// The same client with this op for its next change. The same op again gives the same answer.
    pub fn under(&self, op: Option<OpId>) -> Self {
        Self {
            op: op.or(self.op),
            ..self.clone()
        }
    }

    fn pass(&self, when: &str, what: &str, path: &str) {
        if let Some(failpoints) = self.failpoints {
            failpoints(when, what, transport::about(path));
        }
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub async fn daemon(&self) -> Result<Daemon, Error> {
        self.get("/v1/daemon").await
    }

    /// Answered before the daemon stops. It has stopped when no process listens on the socket.
    pub async fn stop_daemon(&self) -> Result<Daemon, Error> {
        self.post_once("/v1/daemon/stop", &()).await
    }

    /// Lets no new turn begin, or lets turns begin again.
    pub async fn drain_daemon(&self, drain: &Drain) -> Result<Daemon, Error> {
        self.post_once("/v1/daemon/drain", drain).await
    }

    /// Lets the daemon read the user's settings again.
    pub async fn reload_daemon(&self) -> Result<Daemon, Error> {
        self.post_once("/v1/daemon/reload", &()).await
    }

    pub async fn create(&self, create: &Create) -> Result<Created, Error> {
        self.post("/v1/agents", create).await
    }

    pub async fn agents(&self, list: &List) -> Result<Agents, Error> {
        self.get(&with_query("/v1/agents", list)?).await
    }

    pub async fn agent(&self, name: &str) -> Result<Agent, Error> {
        self.get(&of(name, "")).await
    }

    pub async fn spec(&self, name: &str) -> Result<AgentSpec, Error> {
        self.get(&of(name, "/spec")).await
    }

    pub async fn set_spec(&self, name: &str, spec: &AgentSpec) -> Result<Agent, Error> {
        self.put(&of(name, "/spec"), spec).await
    }

    pub async fn start(&self, name: &str, start: &Start) -> Result<Agent, Error> {
        self.post(&of(name, "/start"), start).await
    }

    /// What an imported agent contains that the user has not released.
    pub async fn held(&self, name: &str) -> Result<Held, Error> {
        self.get(&of(name, "/held")).await
    }

    pub async fn stop(&self, name: &str, stop: &Stop) -> Result<Agent, Error> {
        self.post(&of(name, "/stop"), stop).await
    }

    pub async fn restart(&self, name: &str, restart: &Restart) -> Result<Agent, Error> {
        self.post(&of(name, "/restart"), restart).await
    }

    pub async fn reset(&self, name: &str, reset: &Reset) -> Result<Receipt, Error> {
        let client = self.under(reset.op);
        client.post(&of(name, "/reset"), reset).await
    }

    /// Begins a conversation from a branch point; the old conversation is kept.
    pub async fn rewind(&self, name: &str, rewind: &Rewind) -> Result<Receipt, Error> {
        let client = self.under(rewind.op);
        client.post(&of(name, "/rewind"), rewind).await
    }

    /// Shortens what the model sees; the history stays. Answered when the compaction has ended.
    pub async fn compact(&self, name: &str, compact: &Compact) -> Result<Compacted, Error> {
        let client = self.under(compact.op);
        client.post(&of(name, "/compact"), compact).await
    }

    /// Creates an agent that continues from a branch point of this one.
    pub async fn fork(&self, name: &str, fork: &Fork) -> Result<Forked, Error> {
        let client = self.under(fork.op);
        client.post(&of(name, "/fork"), fork).await
    }

    pub async fn checkpoint(
        &self,
        name: &str,
        checkpoint: &Checkpoint,
    ) -> Result<Checkpointed, Error> {
        self.post(&of(name, "/checkpoint"), checkpoint).await
    }

    pub async fn send(&self, name: &str, send: &Send) -> Result<Sent, Error> {
        // The key takes the place of an op.
        let path = of(name, "/prompts");
        match send.key {
            Some(_) => self.post_as_it_is(&path, send).await,
            None => self.post_once(&path, send).await,
        }
    }

    /// The status of a prompt, by its id or the beginning of its id. Waits at most for `wait` until it has ended.
    pub async fn answer(
        &self,
        name: &str,
        prompt: impl fmt::Display,
        wait: Duration,
    ) -> Result<Answer, Error> {
        let wait = wait.as_millis();
        let prompt = prompt.to_string();
        let path = of(
            name,
            &format!("/prompts/{}?wait_ms={wait}", escaped(&prompt)),
        );
        self.get(&path).await
    }

    /// The prompts that wait for the agent.
    pub async fn queue(&self, name: &str) -> Result<Queue, Error> {
        self.get(&of(name, "/queue")).await
    }

    pub async fn edit_prompt(&self, name: &str, edit: &EditPrompt) -> Result<Queue, Error> {
        self.post(&of(name, "/queue/edit"), edit).await
    }

    pub async fn move_prompt(&self, name: &str, order: &MovePrompt) -> Result<Queue, Error> {
        self.post(&of(name, "/queue/move"), order).await
    }

    pub async fn remove_prompts(&self, name: &str, remove: &RemovePrompts) -> Result<Queue, Error> {
        self.post(&of(name, "/queue/remove"), remove).await
    }

    pub async fn interrupt(&self, name: &str) -> Result<Agent, Error> {
        self.post(&of(name, "/interrupt"), &serde_json::json!({}))
            .await
    }

    /// Runs a command in the sandbox of the agent's tools. Answered when the command has ended.
    pub async fn run_command(&self, name: &str, run: &RunCommand) -> Result<EndedCommand, Error> {
        self.post(&of(name, "/commands"), run).await
    }

    /// Continues a turn that a limit ended, or that waits.
    pub async fn continue_turn(&self, name: &str, start: &Start) -> Result<Agent, Error> {
        self.post(&of(name, "/continue"), start).await
    }

    /// Sends the caller's variables to the agent. A turn that waits for its key continues then.
    pub async fn merge_env(&self, name: &str, start: &Start) -> Result<Agent, Error> {
        self.post_as_it_is(&of(name, "/env"), start).await
    }

    /// Approves a call that waits for the user.
    pub async fn approve(
        &self,
        name: &str,
        approval: ApprovalId,
        approve: &Approve,
    ) -> Result<Agent, Error> {
        let path = of(name, &format!("/approvals/{approval}/approve"));
        self.post(&path, approve).await
    }

    /// Answers the question of an MCP server.
    pub async fn answer_question(
        &self,
        name: &str,
        approval: ApprovalId,
        answer: &AnswerQuestion,
    ) -> Result<Agent, Error> {
        let path = of(name, &format!("/approvals/{approval}/answer"));
        self.post(&path, answer).await
    }

    /// Denies a call that waits for approval, or declines a question.
    pub async fn deny(
        &self,
        name: &str,
        approval: ApprovalId,
        deny: &Deny,
    ) -> Result<Agent, Error> {
        let path = of(name, &format!("/approvals/{approval}/deny"));
        self.post(&path, deny).await
    }

    /// What the model is given.
    pub async fn context(&self, name: &str) -> Result<ModelContext, Error> {
        self.get(&of(name, "/context")).await
    }

    pub async fn conversations(&self, name: &str) -> Result<Conversations, Error> {
        self.get(&of(name, "/conversations")).await
    }

    /// One conversation, by its id or its ordinal.
    pub async fn conversation(&self, name: &str, which: &str) -> Result<OneConversation, Error> {
        let path = format!("/conversations/{}", escaped(which));
        self.get(&of(name, &path)).await
    }

    /// One turn, by its id, the beginning of its id, or its number.
    pub async fn turn(&self, name: &str, which: &str, query: &TurnQuery) -> Result<Turn, Error> {
        let path = of(name, &format!("/turns/{}", escaped(which)));
        self.get(&with_query(&path, query)?).await
    }

    /// Every event that one conversation shows, a line of JSON each.
    pub async fn transcript(&self, name: &str, which: &str) -> Result<Bytes, Error> {
        let path = format!("/conversations/{}/transcript", escaped(which));
        self.whole(Method::GET, &of(name, &path), None, Again::AsItIs)
            .await
    }

    pub async fn rename(&self, name: &str, to: &str) -> Result<Agent, Error> {
        let to = to.to_owned();
        self.post(&of(name, "/rename"), &Rename { to }).await
    }

    pub async fn archive(&self, name: &str, archive: &Archive) -> Result<Archived, Error> {
        self.post(&of(name, "/archive"), archive).await
    }

    /// Restores an archived agent.
    pub async fn restore(&self, name: &str, restore: &Restore) -> Result<Agent, Error> {
        self.post(&of(name, "/restore"), restore).await
    }

    pub async fn purge(&self, name: &str, purge: &Purge) -> Result<Purged, Error> {
        self.post(&of(name, "/purge"), purge).await
    }

    /// Applies the retention policy of the user's settings, or says what it would delete.
    pub async fn prune(&self, prune: &Prune) -> Result<Pruned, Error> {
        self.post_as_it_is("/v1/prune", prune).await
    }

    /// The agent as one portable file.
    pub async fn export(&self, name: &str) -> Result<Bytes, Error> {
        self.whole(Method::GET, &of(name, "/export"), None, Again::AsItIs)
            .await
    }

    /// The file is read while it is sent.
    pub async fn import(&self, file: File, import: &Import) -> Result<Agent, Error> {
        let bytes = Upload::of_file(file);
        let bytes = bytes.map_err(|error| Error::Strange(error.to_string()))?;
        let content = Content {
            kind: "application/zstd",
            bytes,
        };
        let path = with_query("/v1/import", import)?;
        self.change(Method::POST, &path, content).await
    }

    /// What was said, in all agents' conversations or in one agent's.
    pub async fn search(&self, search: &Search) -> Result<Found, Error> {
        self.get(&with_query("/v1/search", search)?).await
    }

    /// What agents have spent, by agent, model, day or conversation.
    pub async fn usage(&self, query: &UsageQuery) -> Result<UsageReport, Error> {
        self.get(&with_query("/v1/usage", query)?).await
    }

    /// A page of an agent's events, and where the next one begins.
    pub async fn page(
        &self,
        name: &str,
        query: &EventQuery,
    ) -> Result<(Vec<Event>, Option<Seq>), Error> {
        self.get(&with_query(&of(name, "/events"), query)?).await
    }

    /// An agent's events after a position, and new ones as they are committed.
    pub async fn follow(&self, name: &str, query: &EventQuery) -> Result<Events, Error> {
        let query = EventQuery {
            follow: true,
            ..query.clone()
        };
        self.stream(&with_query(&of(name, "/events"), &query)?)
            .await
    }

    /// All agents' events after a position. The stream ends with the journal, unless `follow` is set.
    pub async fn replay(&self, query: &AllEventsQuery) -> Result<Events, Error> {
        self.stream(&with_query("/v1/events", query)?).await
    }
}
