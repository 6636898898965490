//! Refuses every request if the home is lost, and every change if it is a suspected copy.

use super::respond::Fault;
use crate::daemon::{Daemon, HomeLost};
use crate::error::{Error, Kind};
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;

/// Routes that change no agent although they are not GET.
const HARMLESS: [&str; 2] = ["/v1/daemon/stop", "/v1/hooks/check"];

pub async fn kept(
    State(daemon): State<Arc<Daemon>>,
    request: Request,
    next: Next,
) -> Result<Response, Fault> {
    daemon.check_home().map_err(|HomeLost| lost(&daemon))?;
    let changes = request.method() != Method::GET && !HARMLESS.contains(&request.uri().path());
    if let (true, Some(why)) = (changes, &daemon.home.suspicion) {
        let what = "this state directory seems to be a copy of another one and is open read-only";
        let error = Error::new(Kind::Refused, what).because(why);
        return Err(error
            .next("`agentd adopt-copy` makes it independent; its running commands become unknown")
            .into());
    }
    let response = next.run(request).await;
    if changes {
        // Checked again: a change is not acknowledged if the home was deleted meanwhile.
        daemon.check_home().map_err(|HomeLost| lost(&daemon))?;
    }
    Ok(response)
}

fn lost(daemon: &Daemon) -> Fault {
    let what = format!(
        "the state directory {} was deleted, or replaced by another one",
        daemon.layout.home().display()
    );
    let error = Error::new(Kind::Internal, what);
    Fault(error.next("restore it from a backup; the daemon and the agents' processes end"))
}
