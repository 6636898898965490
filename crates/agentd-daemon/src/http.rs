//! The API over HTTP: one file per noun. A change is completed even if its client disconnects.

mod access;
mod agents;
mod backups;
mod bindings;
mod conversations;
mod daemon;
mod events;
mod files;
mod home;
mod hooks;
mod mcp;
mod prompts;
mod queue;
mod respond;
mod routes;
mod schedules;
mod search;
mod secrets;
mod serve;
mod share;
mod tasks;
mod tool_socket;
mod trust;
mod usage;
mod verbs;

pub use serve::{Room, serve};
pub use tool_socket::serve_tools;

use crate::caller::Caller;
use crate::daemon::Daemon;
use crate::spawn::{Died, caught};
use axum::Router;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Request};
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The largest body of a request.
const LARGEST: usize = 8 * 1024 * 1024;
/// The largest body of a request that may have attachments.
const LARGEST_WITH_FILES: usize = 40 * 1024 * 1024;
/// How many requests with a body above [`LARGEST`] are handled at once; further ones wait.
const MOST_LARGE: usize = 8;
static LARGE: Semaphore = Semaphore::const_new(MOST_LARGE);

pub fn router(daemon: Arc<Daemon>) -> Router {
    routes::all(&daemon)
        .fallback(respond::no_such_path)
        .method_not_allowed_fallback(respond::no_such_method)
        .layer(DefaultBodyLimit::max(LARGEST))
        .layer(from_fn_with_state(Arc::clone(&daemon), home::kept))
        .layer(from_fn(answered))
        .with_state(daemon)
}

/// Raises the limit of the body for a route whose requests may have attachments. Tools keep the smaller limit.
async fn with_files(
    ConnectInfo(caller): ConnectInfo<Caller>,
    mut request: Request,
    next: Next,
) -> Response {
    let length = request.headers().get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let is_large = length.is_some_and(|length| length > LARGEST);
    if !is_large || matches!(caller, Caller::Tool { .. }) {
        return next.run(request).await;
    }
    // The semaphore is never closed.
    let _permit = LARGE.acquire().await;
    DefaultBodyLimit::max(LARGEST_WITH_FILES).apply(&mut request);
    next.run(request).await
}

/// Answers a request even if its handler panics.
async fn answered(request: Request, next: Next) -> Response {
    let response = caught("request", next.run(request)).await;
    response.unwrap_or_else(|Died| respond::died().into_response())
}
