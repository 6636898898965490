//! The settings of the agent, as the editor shows and changes them.

use super::{Done, Session};
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
            Done::Spec(spec.map(Box::new).map_err(Error::from))
        });
    }

    /// Any client may have changed the settings.
    pub(super) fn spec_changed(&mut self, spec: Box<AgentSpec>) {
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

    pub(super) fn set_mode(&self, mode: String, responder: Responder<SetSessionModeResponse>) {
        let (client, name) = (self.shared.client.clone(), self.target.id.clone());
        self.start(async move {
            let spec = set(&client, &name, "approval", &mode).await;
            Done::SetMode(responder, spec)
        });
    }

    pub(super) fn mode_set(
        &mut self,
        responder: Responder<SetSessionModeResponse>,
        spec: Result<Box<AgentSpec>, Error>,
    ) {
        let _gone = match spec {
            Ok(spec) => {
                self.spec_changed(spec);
                responder.respond(SetSessionModeResponse::new())
            }
            Err(error) => responder.respond_with_error(problem::of(error)),
        };
    }

    pub(super) fn set_option(
        &self,
        id: String,
        value: String,
        responder: Responder<SetSessionConfigOptionResponse>,
    ) {
        let (client, name) = (self.shared.client.clone(), self.target.id.clone());
        self.start(async move {
            let spec = set(&client, &name, &id, &value).await;
            Done::SetOption(responder, spec)
        });
    }

    pub(super) fn option_set(
        &mut self,
        responder: Responder<SetSessionConfigOptionResponse>,
        spec: Result<Box<AgentSpec>, Error>,
    ) {
        let _gone = match spec {
            Ok(spec) => {
                self.spec_changed(spec);
                responder.respond(SetSessionConfigOptionResponse::new(self.options()))
            }
            Err(error) => responder.respond_with_error(problem::of(error)),
        };
    }
}

/// Changes one setting, and returns all of them.
async fn set(client: &Client, name: &str, id: &str, value: &str) -> Result<Box<AgentSpec>, Error> {
    let mut spec = client.spec(name).await?;
    options::set(&mut spec, id, value)?;
    keys::set_spec(client, name, &spec).await?;
    Ok(Box::new(spec))
}
