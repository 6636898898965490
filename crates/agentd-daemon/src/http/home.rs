//! What is refused because of the home: everything where it is gone, and every change where it is a suspected copy.

use super::respond::Fault;
use crate::daemon::{Daemon, HomeLost};
use agentd_client::{Kind, Problem};
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;

/// Changes nothing of an agent, though it is no GET.
const HARMLESS: [&str; 2] = ["/v1/daemon/stop", "/v1/hooks/check"];

pub async fn kept(
    State(daemon): State<Arc<Daemon>>,
    request: Request,
    next: Next,
) -> Result<Response, Fault> {
    daemon.check_home().map_err(|HomeLost| lost(&daemon))?;
    let changes = request.method() != Method::GET && !HARMLESS.contains(&request.uri().path());
    if let (true, Some(why)) = (changes, &daemon.home.suspicion) {
        let what = "this state directory seems to be a copy of another one, and is open read-only";
        let problem = Problem::new(Kind::Refused, what).because(why);
        return Err(problem
            .next("`agentd adopt-copy` makes it a home of its own; commands that were running become unknown")
            .into());
    }
    let response = next.run(request).await;
    if changes {
        // It may have been deleted meanwhile: what is acknowledged has to be somewhere.
        daemon.check_home().map_err(|HomeLost| lost(&daemon))?;
    }
    Ok(response)
}

fn lost(daemon: &Daemon) -> Fault {
    let what = format!(
        "the state directory {} was deleted, or replaced by another one",
        daemon.layout.home().display()
    );
    let problem = Problem::new(Kind::Internal, what);
    Fault(problem.next("restore it from a backup; the daemon and the agents' processes end"))
}
