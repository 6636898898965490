//! The settings of the agent, as the editor shows and changes them.

use super::{Done, Session};
use crate::acp::catalog::Models;
use crate::acp::connection::Responder;
use crate::acp::{options, problem};
use crate::error::Error;
use crate::keys;
use crate::layers;
use agent_client_protocol::v1::schema::{
    ConfigOptionUpdate, CurrentModeUpdate, SessionConfigOption, SessionModeState, SessionUpdate,
    SetSessionConfigOptionResponse, SetSessionModeResponse,
};
use agentd_client::Client;
use agentd_core::spec::AgentSpec;
use std::collections::VecDeque;

/// The changes of settings that the editor asked for. Each one reads all settings and writes them, so they are made one at a
/// time: of two at once, one would be lost.
#[derive(Default)]
pub struct Changes {
    waiting: VecDeque<Change>,
    is_running: bool,
}

/// A new value of a setting.
pub struct Change {
    id: String,
    value: String,
    by: ChangedBy,
}

/// The request that asked for a change.
pub enum ChangedBy {
    Mode(Responder<SetSessionModeResponse>),
    Option(Responder<SetSessionConfigOptionResponse>),
}

impl Change {
    pub fn of_mode(mode: String, responder: Responder<SetSessionModeResponse>) -> Self {
        Self {
            id: "approval".to_owned(),
            value: mode,
            by: ChangedBy::Mode(responder),
        }
    }

    pub const fn of_option(
        id: String,
        value: String,
        responder: Responder<SetSessionConfigOptionResponse>,
    ) -> Self {
        let by = ChangedBy::Option(responder);
        Self { id, value, by }
    }
}

impl Session {
    pub fn modes(&self) -> SessionModeState {
        options::modes(&self.spec)
    }

    pub fn options(&self) -> Vec<SessionConfigOption> {
        let default = layers::sandbox_of_environment().unwrap_or_default();
        options::options(&self.spec, &self.models, default)
    }

    pub(super) fn load_spec(&self) {
        let (client, name) = (self.shared.client.clone(), self.target.id.clone());
        self.start(async move {
            let spec = client.spec(&name).await;
            let spec = spec.map(Box::new).map_err(Error::from);
            Done::Spec(name, spec)
        });
    }

    /// Any client may have changed the settings. Those of an agent that the session has left do not count.
    pub(super) fn spec_changed(&mut self, name: &str, spec: Box<AgentSpec>) {
        if name != self.target.id {
            return;
        }
        let before = options::modes(&self.spec).current_mode_id;
        let is_new = self.spec != spec;
        self.translator.set_window(self.models.window(&spec));
        self.spec = spec;
        if !is_new {
            return;
        }
        let mode = self.modes().current_mode_id;
        if mode != before {
            let update = CurrentModeUpdate::new(mode);
            self.update([SessionUpdate::CurrentModeUpdate(update)]);
        }
        let update = ConfigOptionUpdate::new(self.options());
        self.update([SessionUpdate::ConfigOptionUpdate(update)]);
    }

    /// Changes a setting, after the changes that were asked for before.
    pub(super) fn change(&mut self, change: Change) {
        self.changes.waiting.push_back(change);
        self.next_change();
    }

    fn next_change(&mut self) {
        if self.changes.is_running {
            return;
        }
        let Some(change) = self.changes.waiting.pop_front() else {
            return;
        };
        self.changes.is_running = true;
        let (client, name) = (self.shared.client.clone(), self.target.id.clone());
        let models = self.models.clone();
        self.start(async move {
            let spec = set(&client, &name, &models, &change).await;
            Done::Changed(change.by, name, spec)
        });
    }

    pub(super) fn changed(
        &mut self,
        by: ChangedBy,
        name: &str,
        spec: Result<Box<AgentSpec>, Error>,
    ) {
        self.changes.is_running = false;
        let changed = spec.map(|spec| self.spec_changed(name, spec));
        let changed = changed.map_err(problem::of);
        // An editor that is gone needs no answer.
        let _gone = match (by, changed) {
            (ChangedBy::Mode(responder), Ok(())) => {
                responder.respond(SetSessionModeResponse::new())
            }
            (ChangedBy::Mode(responder), Err(error)) => responder.respond_with_error(error),
            (ChangedBy::Option(responder), Ok(())) => {
                responder.respond(SetSessionConfigOptionResponse::new(self.options()))
            }
            (ChangedBy::Option(responder), Err(error)) => responder.respond_with_error(error),
        };
        self.next_change();
    }
}

/// Changes one setting, and returns all of them.
async fn set(
    client: &Client,
    name: &str,
    models: &Models,
    change: &Change,
) -> Result<Box<AgentSpec>, Error> {
    let mut spec = client.spec(name).await?;
    options::set(&mut spec, models, &change.id, &change.value)?;
    keys::set_spec(client, name, &spec).await?;
    Ok(Box::new(spec))
}
