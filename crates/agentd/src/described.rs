//! An agent as the command line describes it.

use crate::error::{Error, Exit};
use crate::providers;
use agentd_core::catalog::Catalog;
use agentd_core::hosts::Hosts;
use agentd_core::spec::{self, AgentSpec, ApprovalMode, Network, Runtime, Sandbox};
use agentd_daemon::confine;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default, clap::Args)]
pub struct Described {
    /// Who serves the model: anthropic, openai, openai-chat, gemini, ollama, openrouter, demo, or
    /// one of config.toml
    #[arg(long)]
    provider: Option<String>,
    /// The model, as its provider spells it
    #[arg(long)]
    model: Option<String>,
    /// An agent file: settings in YAML between `---` lines, then the system prompt
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// The system prompt
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// The directory to work in [default: this one]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    cwd: Option<PathBuf>,
    /// What its tools may see and write: read-only, workspace-write or full-access [default:
    /// workspace-write]
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    sandbox: Option<Sandbox>,
    /// When you are asked about a tool call that no rule is about: on-request, always or never [default:
    /// on-request]
    #[arg(long, value_name = "MODE", value_parser = approval)]
    approval: Option<ApprovalMode>,
    /// What its tools may reach: on, off, or these hosts: example.com,*.example.org [default: on]
    #[arg(long, value_name = "ON|OFF|HOSTS", value_parser = network)]
    network: Option<Network>,
}

fn level(text: &str) -> Result<Sandbox, String> {
    word(text, "read-only, workspace-write or full-access")
}

fn approval(text: &str) -> Result<ApprovalMode, String> {
    word(text, "on-request, always or never")
}

fn network(text: &str) -> Result<Network, String> {
    match text {
        "on" => Ok(Network::On),
        "off" => Ok(Network::Off),
        hosts => {
            let hosts = Hosts::parse(hosts.split(',').map(str::trim));
            hosts.map(Network::Hosts).map_err(|error| error.to_string())
        }
    }
}

fn word<T: DeserializeOwned>(text: &str, known: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|_| format!("say {known}"))
}

impl Described {
    /// Changes a spec as the command line says.
    pub fn apply(&self, spec: &mut AgentSpec) -> Result<(), Error> {
        if let Some(path) = &self.file {
            *spec = read_spec(path)?;
        }
        if self.provider.is_some() {
            spec.provider.clone_from(&self.provider);
            // Another provider's model is not this one's.
            spec.model = None;
        }
        if self.model.is_some() {
            spec.model.clone_from(&self.model);
        }
        if let Some(system) = &self.system {
            spec.system.clone_from(system);
        }
        if self.cwd.is_some() {
            spec.cwd = None;
        }
        spec.sandbox = self.sandbox.or(spec.sandbox);
        spec.network = self.network.clone().or(spec.network.take());
        spec.approval = self.approval.or(spec.approval);
        settle_cwd(spec, self.cwd.as_deref())
    }

    /// A new agent's spec, with all that it takes to run it.
    pub fn spec(&self, catalog: &Catalog) -> Result<AgentSpec, Error> {
        let mut spec = AgentSpec::default();
        self.apply(&mut spec)?;
        settle_defaults(&mut spec, catalog);
        settle_provider(&mut spec, catalog)?;
        Ok(spec)
    }
}

/// What the user has chosen for all new agents. Full access by the environment is kept with the agent's settings, where the
/// journal shows it.
pub fn settle_defaults(spec: &mut AgentSpec, catalog: &Catalog) {
    catalog.agents().apply(spec);
    let of_env = std::env::var(confine::VARIABLE).ok();
    let of_env = of_env.and_then(|level| self::level(&level).ok());
    spec.sandbox = spec
        .sandbox
        .or(of_env.filter(|level| *level == Sandbox::FullAccess));
}

/// The directory of a new agent: the spec's own, else the one given, else the one we are in.
pub fn settle_cwd(spec: &mut AgentSpec, given: Option<&Path>) -> Result<(), Error> {
    let cwd = spec.cwd.as_deref().map(Path::new).or(given);
    spec.cwd = Some(absolute(cwd.unwrap_or_else(|| Path::new(".")))?);
    Ok(())
}

/// Who serves a new agent's model, where the spec does not say; that there is somebody to.
pub fn settle_provider(spec: &mut AgentSpec, catalog: &Catalog) -> Result<(), Error> {
    if spec.runtime != Runtime::Native {
        return Ok(());
    }
    if spec.provider.is_none() && spec.model.is_none() {
        spec.provider = providers::provider_by_any_key(catalog);
    }
    let choice = catalog.resolve(spec.provider.as_deref(), spec.model.as_deref());
    choice.map(|_| ()).map_err(|error| {
        Error::new(Exit::Usage, "no model was chosen")
            .because(error)
            .next("say --provider and --model; `--provider demo` works without a key")
    })
}

fn absolute(path: &Path) -> Result<String, Error> {
    let what = format!("{} is no directory to work in", path.display());
    let found = path
        .canonicalize()
        .map_err(|error| Error::of_file(&what, &error))?;
    found
        .into_os_string()
        .into_string()
        .map_err(|_| Error::new(Exit::Usage, what).because("its name is not UTF-8"))
}

pub fn read_spec(path: &Path) -> Result<AgentSpec, Error> {
    let what = format!("{} cannot be used", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| Error::of_file(&what, &error))?;
    spec::parse(&text).map_err(|error| Error::new(Exit::Usage, what).because(error))
}
