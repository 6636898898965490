//! The known providers, a small table of models, and what the user's configuration file adds to them.
//!
//! ```toml
//! [providers.lab]
//! wire = "openai_chat"
//! base_url = "http://lab.example:8000/v1"
//! key_env = "LAB_API_KEY"            # or a list; or key_file, or key_command
//! default_model = "qwen3"
//!
//! [models."qwen3"]
//! window = 131072
//! input_usd = 0.10                   # per million tokens
//! output_usd = 0.40
//! images = true                      # whether it accepts images and PDFs
//! pdf = false
//! long_context = { above = 100000, input_times = 2, output_times = 1.5 }
//!
//! [daemon]
//! orphan_ms = 3600000
//! session_end_wait_ms = 1500
//! log = "info"
//! max_turns = 8                      # at the same time; further turns wait
//! min_free_mb = 100                  # disk space below which new turns wait
//! day = { usd = 20 }                 # of all agents together
//! supervisor = "auto"                # or native, systemd
//!
//! [agents]                           # for new agents
//! provider = "lab"
//! model = "qwen3"
//! sandbox = "workspace-write"
//! network = "on"
//! approval = "on-request"
//! permissions = [{ tool = "shell", pattern = "git push*", decision = "ask" }]
//!
//! [notify]
//! desktop = true
//! on = ["failed", "approval"]
//! webhooks.team = { url = "https://hooks.example/agentd", secret = "TEAM_HOOK" }
//!
//! [ui]
//! theme = "dark"
//!
//! [backup]                           # made by the daemon itself
//! directory = "/srv/backups"
//! every = "1d"
//! keep = 7
//!
//! [retention]                        # deleted by the daemon itself; nothing by default
//! oneshots = "30d"
//! conversations = "26w"
//! ```

mod agents;
mod at_start;
mod backup;
mod choose;
mod daemon;
mod error;
mod file;
mod layers;
mod left_out;
mod model;
mod names;
mod notify;
mod offered;
mod project;
mod provider;
mod retention;
mod shipped;
mod ui;

pub use agents::AgentDefaults;
pub use at_start::AtStart;
pub use backup::BackupSettings;
pub use daemon::{DaemonSettings, HomeDay, LogLevel, SupervisorChoice};
pub use error::{Error, Fault, Unresolved};
pub use left_out::{LEFT_OUT, without_addresses};
pub use model::{EditForm, ModelEntry, ReasoningForm, ShellForm, ToolForms};
pub use notify::{Asked, DESKTOP, NotifySettings, Webhook, check_url};
pub use project::ProjectSettings;
pub use provider::ProviderEntry;
pub use retention::RetentionSettings;
pub use ui::{Theme, UiSettings};

use crate::message::{FileKind, Wire};
use std::collections::{BTreeMap, BTreeSet};

/// The built-in demo provider, and the name of its only model.
pub const DEMO: &str = "demo";

/// All known providers and models. It starts with the built-in ones.
#[derive(Clone, Debug)]
pub struct Catalog {
    providers: BTreeMap<String, ProviderEntry>,
    models: BTreeMap<String, ModelEntry>,
    daemon: DaemonSettings,
    agents: AgentDefaults,
    notify: NotifySettings,
    ui: UiSettings,
    backup: Option<BackupSettings>,
    retention: RetentionSettings,
    /// The model that a project names without a provider. It is chosen like a model on the command line.
    project_model: Option<String>,
}

/// A provider and one of its models.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub provider: ProviderEntry,
    /// As its provider spells it.
    pub model: String,
    /// What is known about the model. `None` if it is in no table: its window and its price are *unknown*.
    pub known: Option<ModelEntry>,
}

impl Choice {
    /// The kinds of files that are left out of requests. Where nothing is known, files are sent, except PDFs to servers
    /// that are compatible with OpenAI Chat: most of them do not accept any.
    pub fn omits(&self) -> Vec<FileKind> {
        let known = self.known.as_ref();
        let takes_pdf = self.provider.wire != Wire::OpenaiChat;
        let images = known.and_then(|known| known.images).unwrap_or(true);
        let pdf = known.and_then(|known| known.pdf).unwrap_or(takes_pdf);
        let omits = [(FileKind::Image, images), (FileKind::Pdf, pdf)];
        let omits = omits.into_iter().filter(|(_, accepted)| !accepted);
        omits.map(|(kind, _)| kind).collect()
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self::built_in()
    }
}

impl Catalog {
    pub fn built_in() -> Self {
        let providers = provider::built_in().into_iter();
        let models = shipped::models().iter();
        Self {
            providers: providers.map(|entry| (entry.name.clone(), entry)).collect(),
            models: models
                .map(|entry| (entry.name.clone(), entry.clone()))
                .collect(),
            daemon: DaemonSettings::default(),
            agents: AgentDefaults::default(),
            notify: NotifySettings::default(),
            ui: UiSettings::default(),
            backup: None,
            retention: RetentionSettings::default(),
            project_model: None,
        }
    }

    /// Adds the contents of a file, or nothing if the file has an error. `name_of_file` is used in the error. Known
    /// entries are changed field by field.
    pub fn extend(&mut self, text: &str, name_of_file: &str) -> Result<(), Error> {
        let mut extended = self.clone();
        file::extend(&mut extended, text).map_err(|fault| fault.in_file(name_of_file))?;
        *self = extended;
        Ok(())
    }

    pub const fn daemon(&self) -> &DaemonSettings {
        &self.daemon
    }

    /// The defaults of new agents.
    pub const fn agents(&self) -> &AgentDefaults {
        &self.agents
    }

    /// The backups that the daemon makes by itself.
    pub const fn backup(&self) -> Option<&BackupSettings> {
        self.backup.as_ref()
    }

    /// What the daemon deletes by itself after some time.
    pub const fn retention(&self) -> &RetentionSettings {
        &self.retention
    }

    /// What the user is notified of, and where.
    pub const fn notify(&self) -> &NotifySettings {
        &self.notify
    }

    pub const fn ui(&self) -> &UiSettings {
        &self.ui
    }

    /// Sorted by name.
    pub fn providers(&self) -> impl Iterator<Item = &ProviderEntry> {
        self.providers.values()
    }

    /// The environment variables that may hold providers' keys.
    pub fn key_names(&self) -> BTreeSet<String> {
        let names = self.providers().flat_map(|entry| &entry.key_env);
        names.cloned().collect()
    }

    pub fn provider(&self, name: &str) -> Option<&ProviderEntry> {
        self.providers.get(name)
    }

    /// The models of all providers, sorted by name.
    pub fn models(&self) -> impl Iterator<Item = &ModelEntry> {
        self.models.values()
    }

    /// What is known about a model when this provider serves it. A list price applies to the vendor and to routers
    /// that pass it on. What any other provider charges is unknown, unless the user's file states it.
    pub fn model(&self, provider: &str, name: &str) -> Option<ModelEntry> {
        let mut entry = model::find(&self.models, name)?.clone();
        if !entry.is_priced_at(provider) {
            entry.price = None;
        }
        if !entry.has_parameters_at(provider) {
            entry.verbosity = false;
            entry.fast_permille = None;
        }
        Some(entry)
    }

    /// Determines which provider and model the user means. A provider that is not named is found by its model.
    pub fn resolve(
        &self,
        provider: Option<&str>,
        model: Option<&str>,
    ) -> Result<Choice, Unresolved> {
        let name =
            provider
                .or_else(|| self.vendor_of(model?))
                .ok_or_else(|| Unresolved::NoProvider {
                    known: self.names(),
                })?;
        let provider = self.named(name)?;
        let model =
            model
                .or(provider.default_model.as_deref())
                .ok_or_else(|| Unresolved::NoModel {
                    provider: name.to_owned(),
                })?;
        Ok(Choice {
            known: self.model(name, model),
            model: model.to_owned(),
            provider: provider.clone(),
        })
    }

    /// The provider with this name; the error lists the names that exist.
    pub fn named(&self, name: &str) -> Result<&ProviderEntry, Unresolved> {
        self.provider(name)
            .ok_or_else(|| Unresolved::UnknownProvider {
                name: name.to_owned(),
                known: self.names(),
            })
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.providers.keys().map(String::as_str).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests;
