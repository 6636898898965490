//! The options that describe a new agent.

mod outer;

use crate::complete;
use crate::error::{Error, Exit};
use crate::layers::{self, Given};
use crate::output::Output;
use crate::providers;
use crate::ways;
use agentd_core::catalog::{Catalog, Unresolved};
use agentd_core::hosts::Hosts;
use agentd_core::runnable;
use agentd_core::spec::{
    self, AgentSpec, ApprovalMode, Budget, Network, Reasoning, Runtime, Sandbox, Verbosity,
};
use agentd_core::usage::MicroUsd;
use agentd_files::own;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default, clap::Args)]
pub struct Described {
    /// The provider of the model: anthropic, openai, openai-chat, gemini, ollama, openrouter, demo, or
    /// one from config.toml [default: config.toml, else the first with a key]
    #[arg(long, add = complete::providers())]
    provider: Option<String>,
    /// The model, by the name that its provider uses
    #[arg(long, add = complete::models())]
    model: Option<String>,
    /// An agent file: settings in YAML between `---` lines, then the system prompt
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// The system prompt
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// The working directory [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    cwd: Option<PathBuf>,
    /// What its tools can see and write: read-only, workspace-write or full-access [default:
    /// workspace-write]
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    sandbox: Option<Sandbox>,
    /// When a tool call that no rule matches needs approval: on-request, always or never [default:
    /// on-request]
    #[arg(long, value_name = "MODE", value_parser = approval_mode)]
    approval: Option<ApprovalMode>,
    /// Network access of its tools: on, off, or a list of hosts: example.com,*.example.org [default: on]
    #[arg(long, value_name = "ON|OFF|HOSTS", value_parser = network)]
    network: Option<Network>,
    /// How much the model reasons before it answers: off, low, medium or high [default: the provider's]
    #[arg(long, value_name = "LEVEL", value_parser = reasoning)]
    reasoning: Option<Reasoning>,
    /// How much the model writes in its answers: low, medium or high [default: the provider's]
    #[arg(long, value_name = "LEVEL", value_parser = verbosity)]
    verbosity: Option<Verbosity>,
    /// Use the provider's faster service where the model has one; it costs more [default: false]
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    fast: Option<bool>,
    /// Maximum cost of a turn, in dollars
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true)]
    max_usd: Option<MicroUsd>,
    /// Maximum number of model requests in a turn [default: 100]
    #[arg(long, value_name = "N")]
    max_iterations: Option<u32>,
}

fn level(text: &str) -> Result<Sandbox, String> {
    word(text, "read-only, workspace-write or full-access")
}

pub fn approval_mode(text: &str) -> Result<ApprovalMode, String> {
    word(text, "on-request, always or never")
}

fn reasoning(text: &str) -> Result<Reasoning, String> {
    word(text, "off, low, medium or high")
}

fn verbosity(text: &str) -> Result<Verbosity, String> {
    word(text, "low, medium or high")
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

fn dollars(text: &str) -> Result<MicroUsd, String> {
    // Parsed in the same way as in an agent file.
    let budget: Result<Budget, _> = serde_json::from_value(json!({ "usd": text }));
    let usd = budget.map_err(|error| error.to_string())?.usd;
    usd.ok_or_else(|| "expected an amount in dollars, such as 2.50".to_owned())
}

fn word<T: DeserializeOwned>(text: &str, known: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|_| format!("expected {known}"))
}

impl Described {
    /// Only with a model and a working directory.
    pub fn of_model(provider: Option<String>, model: Option<String>, cwd: Option<PathBuf>) -> Self {
        Self {
            provider,
            model,
            cwd,
            ..Self::default()
        }
    }

    /// Applies the options to a spec, and returns the keys that they set.
    pub fn apply(&self, spec: &mut AgentSpec) -> Result<Given, Error> {
        let mut given = Given {
            flags: self.flags(),
            ..Given::default()
        };
        if let Some(path) = &self.file {
            (*spec, given.file) = read_spec(path)?;
        }
        if self.provider.is_some() {
            spec.provider.clone_from(&self.provider);
            // The model in the spec belongs to the previous provider.
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
        spec.reasoning = self.reasoning.or(spec.reasoning);
        spec.verbosity = self.verbosity.or(spec.verbosity);
        spec.fast = self.fast.or(spec.fast);
        let limits = &mut spec.limits;
        limits.turn.usd = self.max_usd.or(limits.turn.usd);
        limits.max_iterations = self.max_iterations.unwrap_or(limits.max_iterations);
        settle_cwd(spec, self.cwd.as_deref())?;
        Ok(given)
    }

    /// The defaults of a new agent that works in this directory.
    pub fn in_dir(cwd: PathBuf) -> Self {
        Self {
            cwd: Some(cwd),
            ..Self::default()
        }
    }

    /// Whether any option is given.
    pub fn is_given(&self) -> bool {
        let others = self.file.is_some() || self.system.is_some() || self.cwd.is_some();
        others || !self.flags().is_empty()
    }

    /// The keys that the options set, except the agent file.
    fn flags(&self) -> BTreeSet<String> {
        let all = [
            ("provider", self.provider.is_some()),
            ("model", self.model.is_some()),
            ("sandbox", self.sandbox.is_some()),
            ("approval", self.approval.is_some()),
            ("network", self.network.is_some()),
            ("reasoning", self.reasoning.is_some()),
            ("verbosity", self.verbosity.is_some()),
            ("fast", self.fast.is_some()),
            ("limits.turn.usd", self.max_usd.is_some()),
            ("limits.max_iterations", self.max_iterations.is_some()),
        ];
        let set = all.into_iter().filter(|(_, is_set)| *is_set);
        set.map(|(key, _)| key.to_owned()).collect()
    }

    /// The working directory that is given, or else the current one.
    pub fn dir(&self) -> Result<String, Error> {
        absolute(self.cwd.as_deref().unwrap_or_else(|| Path::new(".")))
    }

    /// The complete spec of a new agent. Says which settings of the project are ignored.
    pub async fn spec(&self, catalog: &Catalog, out: &mut Output) -> Result<AgentSpec, Error> {
        let mut spec = AgentSpec::default();
        let given = self.apply(&mut spec)?;
        let layers = layers::of(catalog, cwd_of(&spec)).await?;
        layers.tell_ignored(out)?;
        let catalog = layers.catalog;
        settle_defaults(&mut spec, &given, &catalog);
        settle_provider(&mut spec, &catalog, &providers::stored())?;
        Ok(spec)
    }
}

/// The working directory of a spec that has one.
pub fn cwd_of(spec: &AgentSpec) -> &Path {
    Path::new(spec.cwd.as_deref().unwrap_or("."))
}

/// Applies the defaults for new agents, which a project may have narrowed. Full access that the environment grants is
/// stored in the spec, so that the journal shows it.
pub fn settle_defaults(spec: &mut AgentSpec, given: &Given, catalog: &Catalog) {
    catalog.agents().apply(spec, &given.all());
    let of_env = layers::sandbox_of_environment();
    spec.sandbox = spec
        .sandbox
        .or(of_env.filter(|level| *level == Sandbox::FullAccess));
}

/// Sets the working directory of a new agent: that of the spec, else the given one, else the current one.
pub fn settle_cwd(spec: &mut AgentSpec, given: Option<&Path>) -> Result<(), Error> {
    let cwd = spec.cwd.as_deref().map(Path::new).or(given);
    spec.cwd = Some(absolute(cwd.unwrap_or_else(|| Path::new(".")))?);
    Ok(())
}

/// Sets the provider and the model of a new agent as far as its spec does not name them, and checks that a model can be
/// chosen. What the spec alone determines is not added to it.
pub fn settle_provider(
    spec: &mut AgentSpec,
    catalog: &Catalog,
    stored: &BTreeSet<String>,
) -> Result<(), Error> {
    if spec.runtime != Runtime::Native {
        return outer::apply_defaults(spec);
    }
    let keyed = providers::keyed(catalog, stored);
    let choice = catalog.choose(spec.provider.as_deref(), spec.model.as_deref(), &keyed);
    let choice = choice.map_err(|error| no_model(&error, catalog))?;
    let is_same = |provider: Option<&str>, model: Option<&str>| {
        catalog
            .resolve(provider, model)
            .is_ok_and(|it| it == choice)
    };
    let provider = choice.provider.name.as_str();
    if !is_same(spec.provider.as_deref(), spec.model.as_deref()) {
        if !is_same(Some(provider), spec.model.as_deref()) {
            spec.model = Some(choice.model.clone());
        }
        spec.provider = Some(provider.to_owned());
    }
    // Checked here too, so that no agent is created that cannot answer.
    runnable::check_with(&choice, spec)
        .map_err(|error| Error::new(Exit::Refused, error.what()).because(error))
}

fn no_model(error: &Unresolved, catalog: &Catalog) -> Error {
    let next = match error {
        Unresolved::NoKey => ways::next(catalog),
        _ => "pass --provider and --model; `--provider demo` works without a key".to_owned(),
    };
    Error::new(Exit::Usage, "no model was chosen")
        .because(error)
        .next(next)
}

fn absolute(path: &Path) -> Result<String, Error> {
    let what = format!("{} cannot be the working directory", path.display());
    let found = path
        .canonicalize()
        .map_err(|error| Error::of_file(&what, &error))?;
    found
        .into_os_string()
        .into_string()
        .map_err(|_| Error::new(Exit::Usage, what).because("its path is not UTF-8"))
}

/// The settings of an agent file, and the keys that it sets.
pub fn read_spec(path: &Path) -> Result<(AgentSpec, BTreeSet<String>), Error> {
    let what = format!("{} cannot be used", path.display());
    let text = own::read_to_string(path).map_err(|error| Error::of_file(&what, &error))?;
    let read = spec::parse(&text).and_then(|spec| Ok((spec, spec::keys(&text)?)));
    read.map_err(|error| Error::new(Exit::Usage, what).because(error))
}

/// A name for an agent of this directory.
pub fn name_of(dir: &str) -> String {
    let last = dir.rsplit('/').find(|part| !part.is_empty());
    let lower = last.unwrap_or_default().to_ascii_lowercase();
    let kept = lower.chars().map(|c| match c {
        'a'..='z' | '0'..='9' | '-' | '_' | '.' => c,
        _ => '-',
    });
    let name: String = kept.take(40).collect();
    let name = name.trim_matches(['-', '_', '.']);
    match name.is_empty() {
        true => "agent".to_owned(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_agent_is_named_after_its_directory() {
        assert_eq!(name_of("/home/me/My Project"), "my-project");
        assert_eq!(name_of("/srv/.config/"), "config");
        assert_eq!(name_of("/"), "agent");
        assert_eq!(name_of("/łąć"), "agent");
    }
}
