//! The API over HTTP: one file per noun. A change is completed even if its client disconnects.

mod access;
mod agents;
mod conversations;
mod daemon;
mod events;
mod home;
mod hooks;
mod prompts;
mod queue;
mod respond;
mod routes;
mod search;
mod secrets;
mod serve;
mod tasks;
mod tool_socket;
mod trust;
mod usage;
mod verbs;

pub use serve::{Room, serve};
pub use tool_socket::serve_tools;

use crate::daemon::Daemon;
use crate::spawn::{Died, caught};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use std::sync::Arc;

/// The largest body of a request.
const LARGEST: usize = 8 * 1024 * 1024;

pub fn router(daemon: Arc<Daemon>) -> Router {
    routes::all(&daemon)
        .fallback(respond::no_such_path)
        .method_not_allowed_fallback(respond::no_such_method)
        .layer(DefaultBodyLimit::max(LARGEST))
        .layer(from_fn_with_state(Arc::clone(&daemon), home::kept))
        .layer(from_fn(answered))
        .with_state(daemon)
}

/// Answers a request even if its handler panics.
async fn answered(request: Request, next: Next) -> Response {
    let response = caught("request", next.run(request)).await;
    response.unwrap_or_else(|Died| respond::died().into_response())
}
