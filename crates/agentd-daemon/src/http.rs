//! The API over HTTP: one file per noun. What is asked for is done to its end, whoever hangs up.

mod access;
mod agents;
mod conversations;
mod daemon;
mod events;
mod home;
mod hooks;
mod prompts;
mod respond;
mod routes;
mod secrets;
mod serve;
mod tasks;
mod trust;
mod verbs;

pub use serve::{Room, serve};

use crate::daemon::Daemon;
use crate::spawn::{Died, caught};
use agentd_process::failpoint;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::Method;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use std::sync::Arc;

/// What one request may hold.
const LARGEST: usize = 8 * 1024 * 1024;
/// What an agent that is imported may.
const LARGEST_IMPORT: usize = 1024 * 1024 * 1024;

pub fn router(daemon: Arc<Daemon>) -> Router {
    routes::all(&daemon)
        .fallback(respond::no_such_path)
        .method_not_allowed_fallback(respond::no_such_method)
        .layer(DefaultBodyLimit::max(LARGEST))
        .layer(from_fn_with_state(Arc::clone(&daemon), home::kept))
        .layer(from_fn(failpoints))
        .layer(from_fn(answered))
        .with_state(daemon)
}

/// Where the lab may end the daemon, before a request is looked at and before it is answered.
async fn failpoints(request: Request, next: Next) -> Response {
    let noun = noun(request.method(), request.uri().path());
    failpoint::hit_of("on", "request", noun);
    let response = next.run(request).await;
    failpoint::hit_of("before", "answer", noun);
    response
}

/// A request whose handler panics is answered all the same.
async fn answered(request: Request, next: Next) -> Response {
    let response = caught("a request", next.run(request)).await;
    response.unwrap_or_else(|Died| respond::died().into_response())
}

/// What a request is about, whoever it is about.
fn noun(method: &Method, path: &str) -> &'static str {
    const NOUNS: [&str; 22] = [
        "agents",
        "approvals",
        "archive",
        "checkpoint",
        "continue",
        "conversations",
        "daemon",
        "events",
        "export",
        "import",
        "interrupt",
        "prompts",
        "purge",
        "rename",
        "reset",
        "restart",
        "spec",
        "start",
        "stop",
        "tasks",
        "fork",
        "rewind",
    ];
    let mut parts = path.split('/').skip(2);
    let (first, third) = (parts.next(), parts.nth(1));
    let about = third.or(first).unwrap_or_default();
    match NOUNS.into_iter().find(|noun| *noun == about) {
        Some("prompts") if method == Method::GET => "answer",
        Some("daemon") if method == Method::POST => "daemon_stop",
        Some(noun) => noun,
        None => "other",
    }
}
