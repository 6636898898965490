//! An agent as the command line describes it.

use crate::error::{Error, Exit};
use crate::providers;
use agentd_core::catalog::Catalog;
use agentd_core::spec::{self, AgentSpec, Runtime};
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
    /// The folder to work in [default: this one]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    cwd: Option<PathBuf>,
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
        settle_cwd(spec, self.cwd.as_deref())
    }

    /// A new agent's spec, with all that it takes to run it.
    pub fn spec(&self, catalog: &Catalog) -> Result<AgentSpec, Error> {
        let mut spec = AgentSpec::default();
        self.apply(&mut spec)?;
        settle_provider(&mut spec, catalog)?;
        Ok(spec)
    }
}

/// The folder of a new agent: the spec's own, else the one given, else the one we are in.
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
        spec.provider = providers::provider_by_key(catalog);
    }
    let choice = catalog.resolve(spec.provider.as_deref(), spec.model.as_deref());
    choice.map(|_| ()).map_err(|error| {
        Error::new(Exit::Refused, "no model was chosen")
            .because(error)
            .next("say --provider and --model; `--provider demo` works without a key")
    })
}

fn absolute(path: &Path) -> Result<String, Error> {
    let cannot = || {
        Error::new(
            Exit::Refused,
            format!("{} is no folder to work in", path.display()),
        )
    };
    let path = path
        .canonicalize()
        .map_err(|error| cannot().because(error))?;
    path.into_os_string()
        .into_string()
        .map_err(|_| cannot().because("its name is not UTF-8"))
}

pub fn read_spec(path: &Path) -> Result<AgentSpec, Error> {
    let cannot = || Error::new(Exit::Refused, format!("{} cannot be used", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| cannot().because(error))?;
    spec::parse(&text).map_err(|error| cannot().because(error))
}
