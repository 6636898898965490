//! The provider catalog, and the variables of the caller's environment that providers need.

use crate::error::{Error, Exit};
use crate::home;
use crate::outside;
use agentd_client::api::{Agent, Env};
use agentd_core::catalog::{Catalog, ProviderEntry};
use agentd_core::environment::is_handed_on;
use agentd_core::mcp;
use agentd_core::spec::AgentSpec;
use agentd_daemon::layout::Layout;
use agentd_daemon::project;
use agentd_daemon::users_own;
use agentd_runtime::provider::key_file;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The built-in catalog, extended by the user's file.
pub fn catalog() -> Result<Catalog, Error> {
    let mut catalog = Catalog::built_in();
    let path = home::config()?;
    match users_own::read_to_string(&path) {
        Ok(text) => catalog
            .extend(&text, &path.display().to_string())
            .map_err(|error| {
                Error::new(Exit::Usage, "the configuration cannot be used").because(error)
            })?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => {
            let what = format!("{} cannot be read", path.display());
            return Err(Error::new(Exit::Unavailable, what).because(error));
        }
    }
    Ok(catalog)
}

/// The context window of an agent's model in tokens, if it is known. A configuration that cannot be read is reported
/// where its contents are needed.
pub fn window(agent: &Agent) -> Option<u64> {
    let catalog = catalog().ok()?;
    let model = model_of(&catalog, agent.provider.as_deref(), agent.model.as_deref())?;
    catalog.model(agent.provider.as_deref()?, &model)?.window
}

/// The model of an agent: that of its settings, or the default one of its provider.
pub fn model_of(catalog: &Catalog, provider: Option<&str>, model: Option<&str>) -> Option<String> {
    let usual = || catalog.provider(provider?)?.default_model.clone();
    model.map(str::to_owned).or_else(usual)
}

/// The agent with the name of its model, for people.
pub fn with_model(agent: Agent) -> Agent {
    let Ok(catalog) = catalog() else {
        return agent;
    };
    Agent {
        model: model_of(&catalog, agent.provider.as_deref(), agent.model.as_deref()),
        ..agent
    }
}

/// Where the key of a provider is. The key itself is not read, and no command is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    Variable(String),
    /// The variable under which `agentd secret` stores it.
    Stored(String),
    File(PathBuf),
    Command,
}

/// Where this provider's key comes from, in the order of `find_key`; none if there is none.
pub fn key_source(entry: &ProviderEntry, stored: &BTreeSet<String>) -> Option<KeySource> {
    let mut names = entry.key_env.iter();
    if let Some(name) = names.clone().find(|name| variable(name).is_some()) {
        return Some(KeySource::Variable(name.clone()));
    }
    if let Some(name) = names.find(|name| stored.contains(*name)) {
        return Some(KeySource::Stored(name.clone()));
    }
    match key_file(entry, &variable) {
        Some(path) => path.is_file().then_some(KeySource::File(path)),
        None => entry.key_command.as_ref().map(|_| KeySource::Command),
    }
}

/// The providers whose key can be found. An agent without a daemon has no stored secrets.
pub fn keyed(catalog: &Catalog, stored: &BTreeSet<String>) -> BTreeSet<String> {
    let entries = catalog.providers();
    let keyed = entries.filter(|entry| key_source(entry, stored).is_some());
    keyed.map(|entry| entry.name.clone()).collect()
}

/// The names of the stored secrets. Empty if they cannot be read: the daemon reports why.
pub fn stored() -> BTreeSet<String> {
    let Ok(home) = home::dir() else {
        return BTreeSet::new();
    };
    let stored = agentd_daemon::secrets::read(&Layout::new(home));
    stored.map_or_else(|_| BTreeSet::new(), |stored| stored.into_keys().collect())
}

/// The providers that read their key from this variable.
pub fn users_of(catalog: &Catalog, variable: &str) -> Vec<String> {
    let users = catalog.providers();
    let users = users.filter(|entry| entry.key_env.iter().any(|name| name == variable));
    users.map(|entry| entry.name.clone()).collect()
}

/// The variables that a new turn may need, by name: keys and addresses of providers, and the variables of tools, with
/// those that the agent's settings pass to them (`passed`). They are sent over the socket and kept only in memory.
pub fn env(catalog: &Catalog, passed: &BTreeSet<String>) -> Env {
    if outside::is_told() {
        // The daemon refuses variables from an agent's command.
        return Env::new();
    }
    let names = catalog
        .providers()
        .flat_map(|entry| entry.key_env.iter().chain(&entry.base_url_env));
    let named = names.chain(passed);
    let named = named.filter_map(|name| Some((name.clone(), variable(name)?)));
    named.chain(of_programs()).collect()
}

/// The names of the caller's variables that an agent needs: those that its tools get, and those that the settings of its
/// MCP servers refer to, with the servers of its project.
pub fn env_names(spec: &AgentSpec) -> BTreeSet<String> {
    let mut names = spec.passed_env();
    names.extend(mcp::references(&spec.mcp));
    if let (Ok(home), Some(cwd), None) = (crate::home::dir(), &spec.cwd, &spec.tools) {
        let found = project::mcp::servers(&Layout::new(home), Path::new(cwd));
        names.extend(mcp::references(&found.servers));
    }
    names
}

/// The variables that tools and hooks may have.
pub fn of_programs() -> impl Iterator<Item = (String, String)> {
    let all = std::env::vars_os();
    let readable =
        all.filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()));
    readable.filter(|(name, value)| is_handed_on(name) && !value.is_empty())
}
