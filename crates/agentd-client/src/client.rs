//! The typed client: one method for each thing that can be asked.

mod hooks;
mod tasks;

use crate::api::*;
use crate::error::{Error, Problem};
use crate::events::Events;
use agentd_core::event::{Decision, Event};
use agentd_core::id::{ApprovalId, PromptId, Seq};
use agentd_core::spec::AgentSpec;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;

/// A way to the daemon that listens at one socket. Each question has a connection of its own.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
    points: Option<Points>,
}

/// Is told, in the lab alone, that something is about to be asked or was answered: when, what, of what.
pub type Points = fn(&str, &str, &str);

impl Client {
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self {
            socket: socket.into(),
            points: None,
        }
    }

    pub const fn with_points(mut self, points: Option<Points>) -> Self {
        self.points = points;
        self
    }

    fn pass(&self, when: &str, what: &str, path: &str) {
        if let Some(points) = self.points {
            points(when, what, about(path));
        }
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub async fn daemon(&self) -> Result<Daemon, Error> {
        self.get("/v1/daemon").await
    }

    /// Answered before it stops; it has when nobody listens any more.
    pub async fn stop_daemon(&self) -> Result<Daemon, Error> {
        self.post("/v1/daemon/stop", &()).await
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
        self.send_json(Method::PUT, &of(name, "/spec"), spec).await
    }

    pub async fn start(&self, name: &str, start: &Start) -> Result<Agent, Error> {
        self.post(&of(name, "/start"), start).await
    }

    pub async fn stop(&self, name: &str, stop: &Stop) -> Result<Agent, Error> {
        self.post(&of(name, "/stop"), stop).await
    }

    pub async fn restart(&self, name: &str, restart: &Restart) -> Result<Agent, Error> {
        self.post(&of(name, "/restart"), restart).await
    }

    pub async fn reset(&self, name: &str, reset: &Reset) -> Result<Receipt, Error> {
        self.post(&of(name, "/reset"), reset).await
    }

    /// Begins a conversation from a place of another; the old one is kept.
    pub async fn rewind(&self, name: &str, rewind: &Rewind) -> Result<Receipt, Error> {
        self.post(&of(name, "/rewind"), rewind).await
    }

    /// Shortens what the model sees; the history stays. Answered when it is made.
    pub async fn compact(&self, name: &str, compact: &Compact) -> Result<Compacted, Error> {
        self.post(&of(name, "/compact"), compact).await
    }

    /// Makes another agent, which goes on from a place of this one.
    pub async fn fork(&self, name: &str, fork: &Fork) -> Result<Forked, Error> {
        self.post(&of(name, "/fork"), fork).await
    }

    pub async fn checkpoint(
        &self,
        name: &str,
        checkpoint: &Checkpoint,
    ) -> Result<Checkpointed, Error> {
        self.post(&of(name, "/checkpoint"), checkpoint).await
    }

    pub async fn send(&self, name: &str, send: &Send) -> Result<Sent, Error> {
        self.post(&of(name, "/prompts"), send).await
    }

    /// Where a prompt is; waits so long for it to be over.
    pub async fn answer(
        &self,
        name: &str,
        prompt: PromptId,
        wait: Duration,
    ) -> Result<Answer, Error> {
        let wait = wait.as_millis();
        let path = of(name, &format!("/prompts/{prompt}?wait_ms={wait}"));
        self.get(&path).await
    }

    pub async fn interrupt(&self, name: &str) -> Result<Agent, Error> {
        self.post(&of(name, "/interrupt"), &serde_json::json!({}))
            .await
    }

    /// Takes up a turn that a limit ended, or that waits.
    pub async fn go_on(&self, name: &str, start: &Start) -> Result<Agent, Error> {
        self.post(&of(name, "/continue"), start).await
    }

    pub async fn decide(
        &self,
        name: &str,
        approval: ApprovalId,
        decision: Decision,
    ) -> Result<Agent, Error> {
        let path = of(name, &format!("/approvals/{approval}"));
        self.post(&path, &Answered { decision }).await
    }

    pub async fn conversations(&self, name: &str) -> Result<Conversations, Error> {
        self.get(&of(name, "/conversations")).await
    }

    /// One conversation, by its id or its ordinal.
    pub async fn conversation(&self, name: &str, which: &str) -> Result<OneConversation, Error> {
        let path = format!("/conversations/{}", escaped(which));
        self.get(&of(name, &path)).await
    }

    /// Every event that one conversation shows, a line of JSON each.
    pub async fn transcript(&self, name: &str, which: &str) -> Result<Bytes, Error> {
        let path = format!("/conversations/{}/transcript", escaped(which));
        let response = self.ask(Method::GET, &of(name, &path), None).await?;
        whole(response).await
    }

    pub async fn rename(&self, name: &str, to: &str) -> Result<Agent, Error> {
        let to = to.to_owned();
        self.post(&of(name, "/rename"), &Rename { to }).await
    }

    pub async fn archive(&self, name: &str, archive: &Archive) -> Result<Archived, Error> {
        self.post(&of(name, "/archive"), archive).await
    }

    /// Takes one out again that was put away.
    pub async fn restore(&self, name: &str) -> Result<Agent, Error> {
        self.post(&of(name, "/restore"), &()).await
    }

    pub async fn purge(&self, name: &str, purge: &Purge) -> Result<Purged, Error> {
        self.post(&of(name, "/purge"), purge).await
    }

    /// The agent as one portable file.
    pub async fn export(&self, name: &str) -> Result<Bytes, Error> {
        let response = self.ask(Method::GET, &of(name, "/export"), None).await?;
        whole(response).await
    }

    pub async fn import(&self, file: Bytes) -> Result<Agent, Error> {
        let body = Some(("application/zstd", file));
        let response = self.ask(Method::POST, "/v1/import", body).await?;
        read(&whole(response).await?)
    }

    /// A page of an agent's events, and where the next one begins.
    pub async fn page(
        &self,
        name: &str,
        query: &EventQuery,
    ) -> Result<(Vec<Event>, Option<Seq>), Error> {
        self.get(&with_query(&of(name, "/events"), query)?).await
    }

    /// An agent's events as they come, from a place on.
    pub async fn follow(&self, name: &str, query: &EventQuery) -> Result<Events, Error> {
        let query = EventQuery {
            follow: true,
            ..query.clone()
        };
        self.stream(&with_query(&of(name, "/events"), &query)?)
            .await
    }

    /// All agents' events, from a place on; they end where the journal does, unless they are followed.
    pub async fn replay(&self, query: &AllEventsQuery) -> Result<Events, Error> {
        self.stream(&with_query("/v1/events", query)?).await
    }

    async fn stream(&self, path: &str) -> Result<Events, Error> {
        let response = self.ask(Method::GET, path, None).await?;
        Ok(Events::new(response.into_body()))
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let response = self.ask(Method::GET, path, None).await?;
        read(&whole(response).await?)
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<T, Error> {
        self.send_json(Method::POST, path, body).await
    }

    async fn send_json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<T, Error> {
        let body = serde_json::to_vec(body).map_err(strange)?;
        let body = Some(("application/json", body.into()));
        let response = self.ask(method, path, body).await?;
        read(&whole(response).await?)
    }

    /// Sends a request; an answer that is a problem is an error.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, Bytes)>,
    ) -> Result<Response<Incoming>, Error> {
        let stream = UnixStream::connect(&self.socket).await;
        let stream = stream.map_err(|source| Error::NotRunning {
            path: self.socket.clone(),
            source,
        })?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        // It ends with the answer, or when nobody waits for one any more.
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "agentd");
        let request = match &body {
            Some((kind, _)) => request.header(CONTENT_TYPE, *kind),
            None => request,
        };
        let body = body.map(|(_, body)| body).unwrap_or_default();
        let request = request.body(Full::new(body)).map_err(strange)?;
        self.pass("before", "ask", path);
        let response = sender.send_request(request).await.map_err(broken)?;
        self.pass("on", "answer", path);
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let body = whole(response).await?;
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => Err(Error::Problem(Box::new(problem))),
            Err(_) => Err(Error::Strange(format!("{status} without a reason"))),
        }
    }
}

/// What is asked about, whoever it is about.
fn about(path: &str) -> &str {
    let path = path.split('?').next().unwrap_or_default();
    let mut parts = path.split('/').skip(2);
    let (first, third) = (parts.next(), parts.nth(1));
    third.or(first).unwrap_or_default()
}

fn of(name: &str, rest: &str) -> String {
    format!("/v1/agents/{}{rest}", escaped(name))
}

pub(crate) fn with_query(path: &str, query: &impl Serialize) -> Result<String, Error> {
    let query = serde_json::to_value(query).map_err(strange)?;
    let fields = query.as_object().into_iter().flatten();
    let mut path = path.to_owned();
    for (n, (name, value)) in fields.enumerate() {
        let value = match value {
            serde_json::Value::String(text) => escaped(text),
            other => escaped(&other.to_string()),
        };
        path.push(if n == 0 { '?' } else { '&' });
        path.push_str(&format!("{name}={value}"));
    }
    Ok(path)
}

/// Everything but letters, digits and `-._~` as its bytes in hexadecimal.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

async fn whole(response: Response<Incoming>) -> Result<Bytes, Error> {
    let body = response.into_body().collect().await;
    Ok(body.map_err(broken)?.to_bytes())
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(strange)
}

fn broken(error: hyper::Error) -> Error {
    Error::Broken(error.to_string())
}

fn strange(error: impl ToString) -> Error {
    Error::Strange(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_about_its_noun() {
        assert_eq!(about("/v1/agents/coder/prompts/1?wait_ms=5"), "prompts");
        assert_eq!(about("/v1/agents?limit=5"), "agents");
        assert_eq!(about("/v1/agents/coder"), "agents");
        assert_eq!(about("/v1/daemon"), "daemon");
    }

    #[test]
    fn names_and_queries_travel_whole() {
        assert_eq!(of("a/b c", "/x"), "/v1/agents/a%2Fb%20c/x");
        let list = List {
            prefix: Some("ü&".to_owned()),
            by_name: true,
            ..List::default()
        };
        let path = with_query("/v1/agents", &list).unwrap();
        assert!(path.contains("prefix=%C3%BC%26"), "{path}");
        assert!(path.contains("by_name=true"), "{path}");
    }
}
