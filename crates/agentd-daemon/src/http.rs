//! The API over HTTP: one file per noun. What is asked for is done to its end, whoever hangs up.

mod access;
mod agents;
mod conversations;
mod daemon;
mod events;
mod hooks;
mod prompts;
mod respond;
mod tasks;
mod verbs;

use crate::daemon::{Daemon, left};
use access::{Own, Peer};
use agentd_process::failpoint;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::Method;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post, put};
use std::future::IntoFuture as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;

/// What one request may hold.
const LARGEST: usize = 8 * 1024 * 1024;
/// What an agent that is imported may.
const LARGEST_IMPORT: usize = 1024 * 1024 * 1024;
/// How long open streams may take to end with the daemon.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub fn router(daemon: Arc<Daemon>) -> Router {
    let guarded = Router::new()
        .route("/reset", post(verbs::reset))
        .route("/rewind", post(verbs::rewind))
        .route("/fork", post(verbs::fork))
        .route("/compact", post(verbs::compact))
        .route("/spec", put(agents::set_spec))
        .route("/rename", post(verbs::rename))
        .route("/archive", post(verbs::archive))
        .route("/restore", post(verbs::restore))
        .route("/purge", post(verbs::purge))
        .route("/approvals/{approval}", post(verbs::decide))
        .route_layer(from_fn_with_state(Arc::clone(&daemon), access::no_tools));
    let guarded_hooks = Router::new()
        .route("/v1/hooks/test", post(hooks::test))
        .route("/v1/hooks/trust", post(hooks::trust))
        .route_layer(from_fn_with_state(Arc::clone(&daemon), access::no_tools));
    let verbs = Router::new()
        .route("/start", post(verbs::start))
        .route("/stop", post(verbs::stop))
        .route("/restart", post(verbs::restart))
        .route("/interrupt", post(verbs::interrupt))
        .route("/continue", post(verbs::go_on))
        .route("/checkpoint", post(verbs::checkpoint));
    let agent = Router::new()
        .route("/", get(agents::show))
        .route("/spec", get(agents::spec))
        .route("/conversations", get(conversations::list))
        .route("/conversations/{which}", get(conversations::show))
        .route(
            "/conversations/{which}/transcript",
            get(conversations::transcript),
        )
        .route("/tasks", get(tasks::of_agent))
        .route("/tasks/{task}/output", get(tasks::output))
        .route("/export", get(agents::export))
        .route("/events", get(events::of_agent))
        .route("/prompts", post(prompts::send))
        .route("/prompts/{prompt}", get(prompts::answer))
        .merge(guarded)
        .merge(verbs);
    Router::new()
        .route("/v1/daemon", get(daemon::show))
        .route("/v1/daemon/stop", post(daemon::stop))
        .route("/v1/agents", get(agents::list).post(agents::create))
        .nest("/v1/agents/{name}", agent)
        .route("/v1/tasks", get(tasks::of_all))
        .route("/v1/tasks/{which}/stop", post(tasks::stop))
        .route("/v1/hooks", get(hooks::list))
        .route("/v1/hooks/check", post(hooks::check))
        .merge(guarded_hooks)
        .route("/v1/events", get(events::of_all))
        .route(
            "/v1/import",
            post(agents::import).layer(DefaultBodyLimit::max(LARGEST_IMPORT)),
        )
        .fallback(respond::no_such_path)
        .method_not_allowed_fallback(respond::no_such_method)
        .layer(DefaultBodyLimit::max(LARGEST))
        .layer(from_fn(points))
        .with_state(daemon)
}

/// Where the lab may end the daemon, before a request is looked at and before it is answered.
async fn points(request: Request, next: Next) -> Response {
    let noun = noun(request.method(), request.uri().path());
    failpoint::hit_of("on", "request", noun);
    let response = next.run(request).await;
    failpoint::hit_of("before", "answer", noun);
    response
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

pub async fn serve(daemon: Arc<Daemon>, listener: UnixListener) {
    let mut ending = daemon.ending();
    let mut late = daemon.ending();
    let app = router(daemon).into_make_service_with_connect_info::<Peer>();
    let serve = axum::serve(Own(listener), app);
    let serve = serve.with_graceful_shutdown(async move {
        left(&mut ending).await;
    });
    let deadline = async move {
        left(&mut late).await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        _served = serve.into_future() => {}
        () = deadline => {}
    }
}
