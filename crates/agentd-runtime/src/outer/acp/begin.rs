//! Begins the session of a child.

use super::history::History;
use super::rpc::Connection;
use super::served::Served;
use super::session::{Kept, LONGEST_SESSION};
use super::{AcpChild, locked};
use agentd_core::outer::acp::{self, Capabilities, Costs, Offer};
use serde_json::json;
use std::sync::Mutex;

/// The request after which a program repeats the history of the session.
const LOAD: &str = "session/load";

/// What is known of the session before it begins.
pub struct Before<'a> {
    pub kept: Option<Kept>,
    pub costs: &'a Mutex<Costs>,
    pub history: &'a History,
    /// The replies of the conversation, which a session that is loaded repeats.
    pub replies: &'a [String],
}

impl AcpChild {
    /// Initializes the connection, and resumes, loads or begins a session, as far as the child can. Returns the session, and
    /// whether it knows nothing of the conversation.
    pub(super) async fn begin(
        &self,
        connection: &Connection,
        served: &Served,
        before: Before<'_>,
    ) -> Result<(Capabilities, String, bool), String> {
        let unknown = Capabilities::default();
        let hello = acp::initialize(&self.version, Offer::All);
        let hello = connection.request("initialize", hello).await;
        let hello = hello.map_err(|error| acp::failure("initialize", &error, &unknown))?;
        let capabilities = Capabilities::of(&hello);
        acp::check_version(&hello)?;
        let cwd = self.options.cwd.display().to_string();
        let servers = acp::servers(&self.servers, &capabilities);
        let method = match (capabilities.resume, capabilities.load) {
            (true, _) => Some("session/resume"),
            (false, true) => Some(LOAD),
            (false, false) => None,
        };
        let kept = before.kept;
        let usable = kept.clone().filter(|kept| !kept.given_up);
        if let (Some(old), Some(method)) = (usable, method) {
            let params = json!({"sessionId": old.session, "cwd": cwd, "mcpServers": servers});
            served.open(&old.session);
            if method == LOAD {
                before.history.load(before.replies);
            }
            match connection.request(method, params).await {
                Ok(_) => {
                    before.history.until_quiet().await;
                    return Ok((capabilities, old.session, !old.prompted));
                }
                Err(error) => {
                    before.history.forget();
                    let error = self.options.secrets.redact_json(error);
                    tracing::warn!(%error, method, "the old session is not available");
                }
            }
        }
        let params = json!({"cwd": cwd, "mcpServers": servers});
        *locked(before.costs) = Costs::after(Some(0.0));
        let new = connection.new_session(params).await;
        let new = new.map_err(|error| acp::failure("session/new", &error, &capabilities))?;
        let session = new["sessionId"].as_str().unwrap_or_default().to_owned();
        if session.is_empty() || session.len() > LONGEST_SESSION {
            return Err("the agent's program gave its session no usable id".to_owned());
        }
        // Durable before the first prompt: a session that had one is found again.
        let stored = self
            .session_file()
            .write(&Kept::after(session.clone(), kept));
        stored.map_err(|error| format!("the session's id cannot be stored: {error}"))?;
        Ok((capabilities, session, true))
    }
}
