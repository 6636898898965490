//! The server's side of HTTP: who is asked, whether it is allowed, and what goes out.

use super::reply::{self, Event, Reply};
use super::script::{self, FaultKind, Step};
use super::view::view;
use super::{Format, Recorded, Scenario, Shared};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

type Server = Arc<Shared>;

/// Larger than any real provider takes.
const MAX_BODY: usize = 64 * 1024 * 1024;

pub async fn serve(listener: TcpListener, shared: Server) {
    let app = Router::new()
        .route("/v1/messages", post(anthropic))
        .route("/v1/chat/completions", post(openai_chat))
        .route("/v1/responses", post(openai_responses))
        .route("/v1beta/models/{call}", post(gemini))
        .layer(axum::extract::DefaultBodyLimit::max(MAX_BODY))
        .with_state(shared);
    // Small pieces leave at once, as those of a real model do.
    let listener = listener.tap_io(|connection| {
        let _slower = connection.set_nodelay(true);
    });
    // It runs until its runtime is dropped.
    let _ended = axum::serve(listener, app).await;
}

async fn anthropic(State(server): State<Server>, headers: HeaderMap, body: Bytes) -> Response {
    let allowed = has(&headers, "x-api-key") && has(&headers, "anthropic-version");
    let stream = None;
    answer(&server, Format::Anthropic, allowed, stream, &body).await
}

async fn openai_chat(State(server): State<Server>, headers: HeaderMap, body: Bytes) -> Response {
    answer(&server, Format::OpenaiChat, bearer(&headers), None, &body).await
}

async fn openai_responses(
    State(server): State<Server>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let format = Format::OpenaiResponses;
    answer(&server, format, bearer(&headers), None, &body).await
}

/// Whether it streams is said by the path here, not by the body.
async fn gemini(
    State(server): State<Server>,
    Path(call): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let stream = match call.rsplit_once(':') {
        Some((_, "streamGenerateContent")) => true,
        Some((_, "generateContent")) => false,
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let allowed = has(&headers, "x-goog-api-key");
    answer(&server, Format::Gemini, allowed, Some(stream), &body).await
}

fn has(headers: &HeaderMap, name: &str) -> bool {
    headers.get(name).is_some_and(|value| !value.is_empty())
}

fn bearer(headers: &HeaderMap) -> bool {
    let value = headers.get(header::AUTHORIZATION);
    let value = value.and_then(|value| value.to_str().ok());
    value.is_some_and(|value| {
        value
            .strip_prefix("Bearer ")
            .is_some_and(|key| !key.is_empty())
    })
}

async fn answer(
    server: &Server,
    format: Format,
    allowed: bool,
    stream: Option<bool>,
    bytes: &[u8],
) -> Response {
    if !allowed {
        return refuse(format, 401, "authentication_error", "the key is missing");
    }
    let body: Value = match serde_json::from_slice(bytes) {
        Ok(body) => body,
        Err(error) => return refuse(format, 400, "invalid_request_error", &error.to_string()),
    };
    let violations = format.judge(&body).err().unwrap_or_default();
    let view = view(format, &body, &server.scenario);
    let (step, fault) = if violations.is_empty() {
        let step = step(&server.scenario, &view.prompt, view.replies);
        let fault = step
            .as_ref()
            .ok()
            .and_then(|step| due(server, &view.prompt, view.replies, step, bytes.len()));
        (step, fault)
    } else {
        let listed: Vec<String> = violations.iter().map(ToString::to_string).collect();
        (Err(listed.join("; ")), None)
    };
    let status = match (&step, &fault) {
        (Err(_), _) | (_, Some(FaultKind::Overflow { .. })) => 400,
        (_, Some(FaultKind::Status { status, .. })) => *status,
        _ => 200,
    };
    let recorded = Recorded {
        format,
        prompt: view.prompt,
        body: body.clone(),
        violations,
        status,
        at: std::time::Instant::now(),
        is_finished: false,
    };
    let mut number = 0;
    let mut written = Ok(());
    server.note(|seen| {
        number = seen.requests.len() as u64 + 1;
        if let Some(record) = &server.record {
            written = record.write(number, &recorded);
        }
        seen.requests.push(recorded);
    });
    if let Err(error) = written {
        return refuse(format, 500, "api_error", &format!("no record: {error}"));
    }
    let step = match step {
        Ok(step) => step,
        Err(message) => return refuse(format, 400, "invalid_request_error", &message),
    };
    let reply = Reply {
        model: body["model"].as_str().unwrap_or("fake"),
        items: &step.items,
        number,
        input_tokens: bytes.len() as u64 / 4,
        signature: super::bound::signature(&body),
    };
    let streams = stream.unwrap_or(body["stream"] == true);
    respond(server, format, &reply, streams, step.chunk, fault).await
}

/// What the script or the scenario says for this reply; any other prompt is answered with an echo.
fn step(scenario: &Scenario, prompt: &str, replies: usize) -> Result<Step, String> {
    let steps = match script::parse(prompt) {
        Some(steps) => steps?,
        None => match scenario.replies(prompt) {
            Some(steps) => steps.to_vec(),
            None => return Ok(Step::say(format!("You said: {prompt}"))),
        },
    };
    let step = steps.into_iter().nth(replies);
    Ok(step.unwrap_or_else(|| Step::say("That was all.")))
}

/// The fault whose turn it is.
fn due(
    server: &Server,
    prompt: &str,
    reply: usize,
    step: &Step,
    bytes: usize,
) -> Option<FaultKind> {
    for (index, fault) in step.faults.iter().enumerate() {
        if let FaultKind::Overflow { bytes: most } = fault.kind
            && bytes <= most
        {
            continue;
        }
        let mut is_due = false;
        server.note(|seen| {
            let key = (prompt.to_owned(), reply, index);
            let happened = seen.faults.entry(key).or_default();
            is_due = *happened < fault.times;
            *happened += usize::from(is_due);
        });
        if is_due {
            return Some(fault.kind.clone());
        }
    }
    None
}

fn refuse(format: Format, status: u16, kind: &str, message: &str) -> Response {
    let status_code = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let body = reply::error(format, status, kind, message).to_string();
    (
        status_code,
        [(header::CONTENT_TYPE, "application/json")],
        body,
    )
        .into_response()
}

async fn respond(
    server: &Server,
    format: Format,
    reply: &Reply<'_>,
    streams: bool,
    chunk: Option<usize>,
    fault: Option<FaultKind>,
) -> Response {
    match &fault {
        Some(FaultKind::Overflow { .. }) => {
            let (kind, message) = match format {
                Format::Anthropic => ("invalid_request_error", "prompt is too long"),
                Format::Gemini => ("", "The input exceeds the maximum number of tokens allowed"),
                _ => ("context_length_exceeded", "maximum context length exceeded"),
            };
            return refuse(format, 400, kind, message);
        }
        Some(FaultKind::Status {
            status,
            retry_after,
        }) => {
            let mut response = refuse(format, *status, "api_error", "it was told to fail");
            if let Some(seconds) = retry_after {
                response
                    .headers_mut()
                    .insert(header::RETRY_AFTER, (*seconds).into());
            }
            return response;
        }
        Some(FaultKind::Hang) if !streams => std::future::pending::<()>().await,
        _ => {}
    }
    let (content_type, mut pieces) = if streams {
        let events = reply::stream(format, reply).into_iter();
        ("text/event-stream", events.map(Piece::of).collect())
    } else {
        let body = reply::whole(format, reply).to_string();
        ("application/json", halves(&body))
    };
    let end = spoil(&mut pieces, fault, streams);
    if let Some(size) = chunk {
        pieces = cut(&pieces, size);
    }
    let stream = Streaming {
        server: Arc::clone(server),
        number: reply.number,
        pieces,
        end,
        over: false,
    };
    let body = Body::from_stream(futures_util::stream::unfold(stream, Streaming::next));
    ([(header::CONTENT_TYPE, content_type)], body).into_response()
}

/// What goes out together.
struct Piece {
    bytes: Vec<u8>,
    /// How long to wait before it.
    pause: Duration,
}

impl Piece {
    fn of(event: Event) -> Self {
        Self {
            bytes: event.text().into_bytes(),
            pause: event.pause,
        }
    }

    fn at_once(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            pause: Duration::ZERO,
        }
    }
}

/// A plain body in two pieces, so that it can break in between.
fn halves(body: &str) -> VecDeque<Piece> {
    let (first, second) = body.as_bytes().split_at(body.len() / 2);
    [first, second].into_iter().map(Piece::at_once).collect()
}

/// The same bytes, so many at a time.
fn cut(pieces: &VecDeque<Piece>, size: usize) -> VecDeque<Piece> {
    let bytes: Vec<u8> = pieces
        .iter()
        .flat_map(|piece| piece.bytes.clone())
        .collect();
    bytes.chunks(size).map(Piece::at_once).collect()
}

/// Makes the fault of what would have gone out, and says how it ends.
fn spoil(pieces: &mut VecDeque<Piece>, fault: Option<FaultKind>, streams: bool) -> End {
    match fault {
        Some(FaultKind::Drop { after }) => {
            pieces.truncate(if streams { after } else { 1 });
            End::Drop
        }
        Some(FaultKind::Malformed) if streams => {
            pieces.truncate(2);
            pieces.push_back(Piece::at_once(b"data: {\"type\": \"mess\n\n"));
            End::Good
        }
        Some(FaultKind::Malformed) => {
            pieces.truncate(1);
            End::Good
        }
        Some(FaultKind::Hang) => {
            pieces.truncate(1);
            End::Hang
        }
        _ => End::Good,
    }
}

/// How long a connection lives on behind the last event that it carries.
const DROP_AFTER: Duration = Duration::from_millis(150);

/// How a stream ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Good,
    /// The connection breaks.
    Drop,
    Hang,
}

struct Streaming {
    server: Server,
    /// The request that it answers.
    number: u64,
    pieces: VecDeque<Piece>,
    end: End,
    over: bool,
}

impl Streaming {
    async fn next(mut self) -> Option<(std::io::Result<Bytes>, Self)> {
        let Some(piece) = self.pieces.pop_front() else {
            if self.end == End::Hang {
                std::future::pending::<()>().await;
            }
            let dropped = self.end == End::Drop && !self.over;
            if dropped {
                // What was sent is to arrive before the connection breaks under it.
                tokio::time::sleep(DROP_AFTER).await;
            }
            if self.end == End::Good && !self.over {
                self.finished();
            }
            self.over = true;
            return dropped.then(|| (Err(std::io::ErrorKind::ConnectionReset.into()), self));
        };
        // No pause is no time at all, not the clock's next tick.
        if piece.pause.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(piece.pause).await;
        }
        Some((Ok(Bytes::from(piece.bytes)), self))
    }
}

impl Streaming {
    fn finished(&self) {
        self.server.note(|seen| {
            let at = usize::try_from(self.number).unwrap_or_default();
            if let Some(request) = at.checked_sub(1).and_then(|at| seen.requests.get_mut(at)) {
                request.is_finished = true;
            }
        });
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        if !self.over {
            self.server.note(|seen| seen.disconnects += 1);
        }
    }
}
