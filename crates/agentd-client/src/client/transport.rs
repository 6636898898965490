//! Sends requests, each on its own connection, and sends them again if that is safe.

use super::Client;
use super::upload::Upload;
use crate::error::{Error, Problem};
use crate::events::Events;
use crate::retry::Unanswered;
use agentd_core::id::OpId;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Read as _};
use std::sync::PoisonError;
use std::time::Instant;
use tokio::net::UnixStream;
use uuid::Uuid;

/// The name of this client, which the journal records with the user's decisions.
const CLIENT: &str = concat!("agentd/", env!("CARGO_PKG_VERSION"));

/// The body of a request.
#[derive(Clone)]
pub(super) struct Content {
    pub kind: &'static str,
    pub bytes: Upload,
}

/// Whether a request that was not answered may be sent again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// Yes: it changes nothing, or it has its own key.
    AsItIs,
    /// Only with an op, because it is a change.
    UnderOp,
    /// No: it must not be carried out twice.
    Never,
}

impl Client {
    pub(super) async fn stream(&self, path: &str) -> Result<Events, Error> {
        let response = self.ask(Method::GET, path, None).await?;
        Ok(Events::new(response.into_body()))
    }

    /// A request that must not be sent twice, and whose answer is a stream.
    pub(super) async fn post_stream(&self, path: &str, body: Content) -> Result<Incoming, Error> {
        let response = self.ask(Method::POST, path, Some(body)).await?;
        Ok(response.into_body())
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let answer = self.whole(Method::GET, path, None, Again::AsItIs);
        read(&answer.await?)
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<T, Error> {
        self.change(Method::POST, path, json(body)?).await
    }

    /// A request that changes nothing, or that has its own key.
    pub(crate) async fn post_as_it_is<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<T, Error> {
        let answer = self.whole(Method::POST, path, Some(json(body)?), Again::AsItIs);
        read(&answer.await?)
    }

    /// A request that must not be sent twice.
    pub(crate) async fn post_once<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<T, Error> {
        let answer = self.whole(Method::POST, path, Some(json(body)?), Again::Never);
        read(&answer.await?)
    }

    pub(super) async fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<T, Error> {
        self.change(Method::PUT, path, json(body)?).await
    }

    pub(super) async fn change<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        content: Content,
    ) -> Result<T, Error> {
        let answer = self.whole(method, path, Some(content), Again::UnderOp);
        read(&answer.await?)
    }

    /// The whole answer to a request. The request is sent again if that is safe and there is a [`Retry`](crate::Retry).
    pub(super) async fn whole(
        &self,
        method: Method,
        path: &str,
        content: Option<Content>,
        again: Again,
    ) -> Result<Bytes, Error> {
        let op = match again {
            Again::UnderOp if self.retry.is_some() => {
                Some(self.op.unwrap_or_else(|| OpId::new(Uuid::now_v7())))
            }
            Again::UnderOp => self.op,
            Again::AsItIs | Again::Never => None,
        };
        let path = match op {
            Some(op) => with_op(path, op),
            None => path.to_owned(),
        };
        let mut since = None;
        loop {
            let answer = self.once(method.clone(), &path, content.clone()).await;
            let error = match answer {
                Err(error) if error.is_gone() && again != Again::Never => error,
                answer => return answer,
            };
            let Some(retry) = &self.retry else {
                return Err(error);
            };
            let since = *since.get_or_insert_with(Instant::now);
            let unanswered = Unanswered { error, op, since };
            retry.again(&unanswered).await.map_err(Box::new)?;
        }
    }

    async fn once(
        &self,
        method: Method,
        path: &str,
        content: Option<Content>,
    ) -> Result<Bytes, Error> {
        whole(self.ask(method, path, content).await?).await
    }

    /// Sends a request. An answer that is a problem becomes an error.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        content: Option<Content>,
    ) -> Result<Response<Incoming>, Error> {
        let stream = self.connect().await?;
        self.check_owner(&stream)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        // It ends with the answer, or when the request is dropped.
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "agentd")
            .header(USER_AGENT, CLIENT);
        let request = match &content {
            Some(content) => request.header(CONTENT_TYPE, content.kind),
            None => request,
        };
        let body = content.map_or_else(Upload::empty, |content| content.bytes);
        let request = request.body(body).map_err(strange)?;
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
            Err(_) => Err(Error::Strange(format!("status {status} without a problem"))),
        }
    }
}

impl Client {
    async fn connect(&self) -> Result<UnixStream, Error> {
        let connected = self
            .stream
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // The daemon closes a connection on which no request comes in time, for example while a user types a key.
        let stream = match connected.filter(is_open) {
            Some(stream) => UnixStream::from_std(stream),
            None => UnixStream::connect(&self.socket).await,
        };
        stream.map_err(|source| Error::NotRunning {
            path: self.socket.clone(),
            source,
        })
    }

    /// Requests carry keys, so they are only sent to a daemon of the same user.
    fn check_owner(&self, stream: &UnixStream) -> Result<(), Error> {
        let path = self.socket.clone();
        let owner = match stream.peer_cred() {
            Ok(owner) => owner.uid(),
            Err(source) => return Err(Error::NotRunning { path, source }),
        };
        if self.serves_anybody || owner == rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        Err(Error::Stranger { path, uid: owner })
    }
}

/// Whether the daemon still waits for a request: it sends nothing before one.
fn is_open(stream: &std::os::unix::net::UnixStream) -> bool {
    if stream.set_nonblocking(true).is_err() {
        return false;
    }
    let mut reader = stream;
    let read = reader.read(&mut [0]);
    read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

pub(super) fn json(body: &impl Serialize) -> Result<Content, Error> {
    let bytes = serde_json::to_vec(body).map_err(strange)?;
    Ok(Content {
        kind: "application/json",
        bytes: Upload::of(bytes),
    })
}

fn with_op(path: &str, op: OpId) -> String {
    let sign = if path.contains('?') { '&' } else { '?' };
    format!("{path}{sign}op={}", escaped(op.as_str()))
}

/// The noun of a path, for the names of failpoints.
pub(super) fn about(path: &str) -> &str {
    let path = path.split('?').next().unwrap_or_default();
    let mut parts = path.split('/').skip(2);
    let (first, third) = (parts.next(), parts.nth(1));
    third.or(first).unwrap_or_default()
}

pub(super) fn of(name: &str, rest: &str) -> String {
    format!("/v1/agents/{}{rest}", escaped(name))
}

pub(super) fn with_query(path: &str, query: &impl Serialize) -> Result<String, Error> {
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
pub(super) fn escaped(text: &str) -> String {
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

pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
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
    use crate::api::List;
    use std::os::unix::net;

    #[tokio::test]
    async fn a_connection_that_the_daemon_has_closed_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("api.sock");
        let listener = net::UnixListener::bind(&socket).unwrap();
        let client = Client::new(&socket);
        let closed = client
            .clone()
            .with_stream(Some(net::UnixStream::pair().unwrap().0));
        closed.connect().await.unwrap();
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_ok());
        let (ours, _theirs) = net::UnixStream::pair().unwrap();
        let open = client.with_stream(Some(ours));
        open.connect().await.unwrap();
        assert!(listener.accept().is_err());
        open.connect().await.unwrap();
        assert!(listener.accept().is_ok());
    }

    #[test]
    fn an_op_travels_with_the_path() {
        let op = "a b&c".parse().unwrap();
        assert_eq!(with_op("/v1/import", op), "/v1/import?op=a%20b%26c");
        assert_eq!(with_op("/v1/x?y=1", op), "/v1/x?y=1&op=a%20b%26c");
    }

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
