//! The HTTP client of the transport. The library has one, which reads the body of an answer without a limit; this one has a
//! limit, and otherwise reacts to answers as the library does.

use super::short;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, ServerJsonRpcMessage,
};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use rmcp_sse::{Sse, SseStream};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// The largest body of an answer, and the largest event of a stream.
pub(super) const BODY_BYTES: usize = 16 * 1024 * 1024;
/// How much is read of the body of an answer that is an error.
const ERROR_BYTES: usize = 64 * 1024;

type Failed = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

#[derive(Clone)]
pub(super) struct BoundedClient(reqwest::Client);

impl BoundedClient {
    pub const fn new(client: reqwest::Client) -> Self {
        Self(client)
    }

    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Response, Failed> {
        let accepted = format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}");
        let mut request = self.0.post(uri).header(ACCEPT, accepted);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let reserved = [ACCEPT.as_str(), HEADER_SESSION_ID, HEADER_LAST_EVENT_ID];
        for (name, value) in headers {
            if reserved
                .iter()
                .any(|it| name.as_str().eq_ignore_ascii_case(it))
            {
                return Err(Failed::ReservedHeaderConflict(name.to_string()));
            }
            request = request.header(name, value);
        }
        if let Some(session) = session {
            request = request.header(HEADER_SESSION_ID, session);
        }
        let body = serde_json::to_vec(message)?;
        let request = request.header(CONTENT_TYPE, JSON_MIME_TYPE).body(body);
        request.send().await.map_err(|error| not_sent(&error))
    }
}

/// The client's own text names only the URL; the reason is in its causes.
fn not_sent(error: &reqwest::Error) -> Failed {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let whom = error.url().map_or_else(
        || "the server".to_owned(),
        |url| url.origin().ascii_serialization(),
    );
    let what = match error.is_connect() {
        true => "cannot connect to",
        false => "the request failed to",
    };
    Failed::Io(io::Error::other(format!("{what} {whom}: {innermost}")))
}

impl StreamableHttpClient for BoundedClient {
    type Error = reqwest::Error;

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<Events, Failed> {
        let client = &self.0;
        client
            .get_stream(uri, session_id, last_event_id, auth_header, custom_headers)
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
        max_sse_event_size: usize,
    ) -> Result<Events, Failed> {
        // The library limits the events of a stream.
        let client = &self.0;
        client
            .get_stream_with_max_sse_event_size(
                uri,
                session_id,
                last_event_id,
                auth_header,
                custom_headers,
                max_sse_event_size,
            )
            .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Failed> {
        let client = &self.0;
        client
            .delete_session(uri, session_id, auth_header, custom_headers)
            .await
    }

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let session = session_id.as_deref();
        let response = self
            .post(&uri, &message, session, auth_header, custom_headers)
            .await?;
        let exchange = Exchange {
            is_request: matches!(message, JsonRpcMessage::Request(_)),
            has_session: session.is_some(),
            message,
        };
        exchange.read(response).await
    }
}

/// How an answer is read: that depends on what was sent.
struct Exchange {
    message: ClientJsonRpcMessage,
    is_request: bool,
    has_session: bool,
}

impl Exchange {
    async fn read(&self, response: Response) -> Result<StreamableHttpPostResponse, Failed> {
        if let Some(failed) = challenge(&response) {
            return Err(failed);
        }
        let status = response.status();
        match status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                return Ok(StreamableHttpPostResponse::Accepted);
            }
            StatusCode::NOT_FOUND if self.has_session => return Err(Failed::SessionExpired),
            StatusCode::TOO_MANY_REQUESTS => return Err(status_error(status)),
            _ => {}
        }
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned());
        let is = |mime: &str| kind.as_deref().is_some_and(|kind| kind.starts_with(mime));
        let session = response.headers().get(HEADER_SESSION_ID);
        let session = session.and_then(|id| id.to_str().ok()).map(str::to_owned);
        if !status.is_success() {
            return self.refused(response, is(JSON_MIME_TYPE), session).await;
        }
        // Some servers return an empty answer where they should return 202.
        if response.content_length() == Some(0) && !self.is_request {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if is(EVENT_STREAM_MIME_TYPE) {
            return Ok(StreamableHttpPostResponse::Sse(events(response), session));
        }
        if !is(JSON_MIME_TYPE) {
            return Err(Failed::UnexpectedContentType(kind));
        }
        let body = body(response, BODY_BYTES).await?;
        match serde_json::from_slice(&body) {
            Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            // No answer is needed.
            Err(_) if !self.is_request => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => Err(strange(format!("its answer is not a message: {error}"))),
        }
    }

    /// An answer with the status of an error. It may contain the error of the server.
    async fn refused(
        &self,
        response: Response,
        is_json: bool,
        session: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let status = response.status();
        if status.is_server_error() && !is_json {
            return Err(status_error(status));
        }
        let body = body(response, ERROR_BYTES).await.unwrap_or_default();
        let error = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(JsonRpcMessage::Error(error)) => Some(error),
            _ => None,
        };
        let text = format!("HTTP {status}: {}", short(&String::from_utf8_lossy(&body)));
        let is_unauthorized = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
        if is_unauthorized {
            return Err(strange(text));
        }
        if let Some(id) = self.probe().filter(|_| status.is_client_error()) {
            // An older server cannot know to which request its answer belongs.
            let error = error.map(|error| error.error);
            let error = error.unwrap_or_else(|| ErrorData::invalid_request(text, None));
            let message = ServerJsonRpcMessage::error(error, Some(id));
            return Ok(StreamableHttpPostResponse::Json(message, None));
        }
        match error {
            Some(error) if is_json => {
                let message = JsonRpcMessage::Error(error);
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            _ if status.is_server_error() => Err(status_error(status)),
            _ => Err(strange(text)),
        }
    }

    /// The id of the request, if it asks the server what it understands.
    fn probe(&self) -> Option<rmcp::model::RequestId> {
        match &self.message {
            JsonRpcMessage::Request(request)
                if !self.has_session
                    && matches!(request.request, ClientRequest::DiscoverRequest(_)) =>
            {
                Some(request.id.clone())
            }
            _ => None,
        }
    }
}

fn strange(text: String) -> Failed {
    Failed::UnexpectedServerResponse(text.into())
}

fn status_error(status: StatusCode) -> Failed {
    HttpStatusError::new(status.as_u16(), None).into()
}

/// The server wants an authorization.
fn challenge(response: &Response) -> Option<Failed> {
    let header = response.headers().get(WWW_AUTHENTICATE)?;
    let header = String::from_utf8_lossy(header.as_bytes()).into_owned();
    match response.status() {
        StatusCode::UNAUTHORIZED => Some(Failed::AuthRequired(AuthRequiredError::new(header))),
        StatusCode::FORBIDDEN => Some(Failed::InsufficientScope(InsufficientScopeError::new(
            header, None,
        ))),
        _ => None,
    }
}

/// The whole body, up to a limit.
async fn body(mut response: Response, most: usize) -> Result<Vec<u8>, Failed> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > most {
            let most = most >> 20;
            return Err(strange(format!("its answer has more than {most} MiB")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The events of an answer that is a stream. One that is too large ends it.
fn events(response: Response) -> Events {
    let begin = Some((response, EventSize::default()));
    let chunks = stream::unfold(begin, |state| async move {
        let (mut response, mut size) = state?;
        let chunk = match response.chunk().await {
            Ok(chunk) => chunk?,
            Err(error) => return Some((Err(io::Error::other(error)), None)),
        };
        match size.largest_with(&chunk) > BODY_BYTES {
            true => {
                let text = "an event of the stream is too large";
                Some((Err(io::Error::other(text)), None))
            }
            false => Some((Ok(chunk), Some((response, size)))),
        }
    });
    SseStream::from_bytes_stream(chunks.boxed()).boxed()
}

/// The size of the event that a stream has begun. An empty line ends an event.
#[derive(Default)]
struct EventSize {
    bytes: usize,
    in_line: usize,
    last: u8,
}

impl EventSize {
    /// The largest size that the event in progress has had with this chunk.
    fn largest_with(&mut self, chunk: &[u8]) -> usize {
        let mut largest = self.bytes;
        for &byte in chunk {
            let ends_line = match byte {
                b'\r' => true,
                // The second half of the end of a line.
                b'\n' => self.last != b'\r',
                _ => false,
            };
            self.bytes += 1;
            self.last = byte;
            largest = largest.max(self.bytes);
            if !ends_line {
                self.in_line += usize::from(byte != b'\n');
                continue;
            }
            if self.in_line == 0 {
                self.bytes = 0;
            }
            self.in_line = 0;
        }
        largest
    }
}

#[cfg(test)]
mod tests;
