//! The server's side of HTTP: the routes, the check of each request, and the response.

use super::outgoing::{Piece, Streaming, cut, halves, spoil};
use super::reply::{self, Reply};
use super::script::{self, FaultKind, Step};
use super::view::view;
use super::{Format, Recorded, Scenario, Shared};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpListener;

type Server = Arc<Shared>;

/// More than any real provider accepts.
const MAX_BODY: usize = 64 * 1024 * 1024;

pub async fn serve(listener: TcpListener, shared: Server) {
    let app = Router::new()
        .route("/v1/messages", post(anthropic))
        .route("/v1/chat/completions", post(openai_chat))
        .route("/v1/responses", post(openai_responses))
        .route("/v1/models", get(models))
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
    let key =
        shown(&headers, "x-api-key").filter(|_| shown(&headers, "anthropic-version").is_some());
    let stream = None;
    answer(&server, Format::Anthropic, key, stream, &body).await
}

async fn openai_chat(State(server): State<Server>, headers: HeaderMap, body: Bytes) -> Response {
    answer(&server, Format::OpenaiChat, bearer(&headers), None, &body).await
}

/// What a local server lists.
async fn models() -> Response {
    let models = json!({ "object": "list", "data": [{ "id": "fake", "object": "model" }] });
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, models.to_string()).into_response()
}

async fn openai_responses(
    State(server): State<Server>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let format = Format::OpenaiResponses;
    answer(&server, format, bearer(&headers), None, &body).await
}

/// In this format the path says whether the reply is streamed, not the body.
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
    let key = shown(&headers, "x-goog-api-key");
    answer(&server, Format::Gemini, key, Some(stream), &body).await
}

fn shown(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    (!value.is_empty()).then(|| value.to_owned())
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = shown(headers, header::AUTHORIZATION.as_str())?;
    let key = value.strip_prefix("Bearer ")?;
    (!key.is_empty()).then(|| key.to_owned())
}

async fn answer(
    server: &Server,
    format: Format,
    key: Option<String>,
    stream: Option<bool>,
    bytes: &[u8],
) -> Response {
    let Some(key) = key.or_else(|| server.is_keyless.then(String::new)) else {
        return refuse(format, 401, "authentication_error", "the key is missing");
    };
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
        (_, Some(FaultKind::Status { status, .. } | FaultKind::Echo { status })) => *status,
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
    if let Some(FaultKind::Echo { status }) = fault {
        return echo(format, status, &key);
    }
    respond(server, format, &reply, streams, step.chunk, fault).await
}

/// An error like that of a proxy that repeats the request, with its key.
fn echo(format: Format, status: u16, key: &str) -> Response {
    let message = format!("the key {key} is not known here");
    if status != 200 {
        return refuse(format, status, "invalid_request_error", &message);
    }
    let error = reply::error(format, 400, "invalid_request_error", &message);
    let body = format!("event: error\ndata: {error}\n\n");
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// The reply that the script or the scenario specifies; any other prompt is repeated.
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

/// The fault that is due now.
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
        Some(FaultKind::Hang { .. }) if !streams => std::future::pending::<()>().await,
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
    let stream = Streaming::new(Arc::clone(server), reply.number, pieces, end);
    let body = Body::from_stream(futures_util::stream::unfold(stream, Streaming::next));
    ([(header::CONTENT_TYPE, content_type)], body).into_response()
}
