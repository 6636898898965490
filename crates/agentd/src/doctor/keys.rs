//! Providers whose key an agent could not find by itself. No key is shown.

use super::Finding;
use crate::connect;
use crate::error::Error;
use crate::providers::{self, variable};
use agentd_client::api::{AgentLine, Daemon, List};
use agentd_core::catalog::{Catalog, ProviderEntry};
use agentd_runtime::provider::check_own_source;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Agents that are looked at; the most recently used ones.
const AGENTS: usize = 200;
/// How long a `key_command` may take, as long as in a turn.
const COMMAND: Duration = Duration::from_secs(10);

/// Where an agent that no command has sent a key to would find one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unattended {
    /// It is stored, its file or command yields it, or the provider needs none.
    Found,
    /// Only in the environment of commands.
    OnlyCallers,
    /// Its file or command yields none, for this reason.
    Broken(String),
}

/// The keys of all providers in the user's settings.
pub struct Keys {
    catalog: Catalog,
    unattended: BTreeMap<String, Unattended>,
}

impl Keys {
    /// Reads the key files and runs the key commands; an error if the settings cannot be read.
    pub fn read() -> Result<Self, Error> {
        let catalog = providers::catalog()?;
        let stored = providers::stored();
        let unattended = catalog.providers().map(|entry| {
            let found = unattended(entry, &stored);
            (entry.name.clone(), found)
        });
        let unattended = unattended.collect();
        Ok(Self {
            catalog,
            unattended,
        })
    }

    /// None if the provider is unknown.
    pub fn of(&self, provider: &str) -> Option<&Unattended> {
        self.unattended.get(provider)
    }

    /// The reason if the key file or the key command of a provider yields no key.
    pub fn broken(&self, provider: &str) -> Option<&str> {
        match self.of(provider)? {
            Unattended::Broken(why) => Some(why),
            Unattended::Found | Unattended::OnlyCallers => None,
        }
    }

    /// Whether this shell has a variable with the key of a provider.
    pub fn has_variable(&self, provider: &str) -> bool {
        self.catalog.provider(provider).is_some_and(has_variable)
    }
}

fn unattended(entry: &ProviderEntry, stored: &BTreeSet<String>) -> Unattended {
    if entry.key_env.iter().any(|name| stored.contains(name)) {
        return Unattended::Found;
    }
    match check_own_source(entry, &variable, COMMAND) {
        Some(Ok(())) => Unattended::Found,
        Some(Err(error)) => Unattended::Broken(error.to_string()),
        None if entry.key_env.is_empty() => Unattended::Found,
        None => Unattended::OnlyCallers,
    }
}

/// Whether this shell has a variable with the key.
fn has_variable(entry: &ProviderEntry) -> bool {
    entry.key_env.iter().any(|name| variable(name).is_some())
}

pub async fn look(keys: &Result<Keys, Error>, daemon: Option<&Daemon>) -> Vec<Finding> {
    let keys = match keys {
        Ok(keys) => keys,
        Err(error) => {
            let what = format!("config.toml cannot be used: {error}");
            return vec![Finding::problem("settings", what, "correct the file")];
        }
    };
    let mut findings = of_providers(keys);
    if daemon.is_some() {
        let agents = agents().await.unwrap_or_default();
        findings.extend(unable(keys, &agents));
    }
    findings
}

fn of_providers(keys: &Keys) -> Vec<Finding> {
    let mut with_key = Vec::new();
    let mut broken = Vec::new();
    for entry in keys.catalog.providers() {
        let needs_none = entry.key_env.is_empty() && !has_own_source(entry);
        let is_found = keys.of(&entry.name) == Some(&Unattended::Found) && !needs_none;
        if is_found || has_variable(entry) {
            with_key.push(entry.name.as_str());
        }
        if let Some(why) = keys.broken(&entry.name) {
            broken.push(of_broken(entry, why));
        }
    }
    let mut findings = vec![match with_key.is_empty() {
        true => Finding::warning(
            "providers",
            "no provider has a key, in this shell or stored",
            "`agentd init`, or `agentd secret set NAME`",
        ),
        false => Finding::ok(
            "providers",
            format!("a key was found for {}", with_key.join(", ")),
        ),
    }];
    findings.extend(broken);
    findings
}

const fn has_own_source(entry: &ProviderEntry) -> bool {
    entry.key_file.is_some() || entry.key_command.is_some()
}

/// A key file or command that yields no key. Commands of this shell may have the key nevertheless.
fn of_broken(entry: &ProviderEntry, why: &str) -> Finding {
    let name = &entry.name;
    let fix = match entry.key_env.first() {
        Some(variable) => {
            format!("correct [providers.{name}] in config.toml, or `agentd secret set {variable}`")
        }
        None => format!("correct [providers.{name}] in config.toml"),
    };
    match has_variable(entry) {
        true => Finding::warning("keys", why, fix),
        false => Finding::problem("keys", why, fix),
    }
}

async fn agents() -> Result<Vec<AgentLine>, Error> {
    let list = List {
        limit: Some(AGENTS),
        // Their providers are among the words.
        words: true,
        ..List::default()
    };
    Ok(connect::client_of_any()?.agents(&list).await?.agents)
}

/// Agents that could not start by themselves: one finding for each reason.
fn unable(keys: &Keys, agents: &[AgentLine]) -> Vec<Finding> {
    let names = |is_it: &dyn Fn(&Unattended) -> bool| {
        let of_agent = |agent: &&AgentLine| {
            let provider = agent.provider.as_deref();
            provider.and_then(|name| keys.of(name)).is_some_and(is_it)
        };
        let names = agents.iter().filter(of_agent);
        let names: Vec<&str> = names.map(|agent| agent.name.as_str()).collect();
        names.join(", ")
    };
    let only_callers = names(&|found: &Unattended| *found == Unattended::OnlyCallers);
    let broken = names(&|found: &Unattended| matches!(found, Unattended::Broken(_)));
    let fix = "`agentd secret set NAME` stores a key; or `key_file` in config.toml";
    [
        (
            only_callers,
            "their key is only in the environment of commands",
        ),
        (
            broken,
            "the key_file or key_command of their provider yields no key",
        ),
    ]
    .into_iter()
    .filter(|(names, _)| !names.is_empty())
    .map(|(names, why)| {
        let what = format!("these agents cannot start by themselves, because {why}: {names}");
        Finding::warning("keys", what, fix)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    /// One provider with this setting, and no variable.
    fn keys(setting: &str) -> Keys {
        let mut catalog = Catalog::built_in();
        let text = format!(
            "[providers.lab]\nwire = \"openai_chat\"\nbase_url = \"http://127.0.0.1:9\"\n{setting}\n"
        );
        catalog.extend(&text, "config.toml").unwrap();
        let lab = catalog.provider("lab").unwrap();
        let unattended = BTreeMap::from([("lab".to_owned(), unattended(lab, &BTreeSet::new()))]);
        Keys {
            catalog,
            unattended,
        }
    }

    #[test]
    fn a_file_and_a_command_that_yield_no_key_are_problems_and_no_value_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        std::fs::write(path("empty"), "\n").unwrap();
        std::fs::write(path("two"), "s3cret\nlines\n").unwrap();
        for (setting, why) in [
            (format!("key_file = \"{}\"", path("missing")), "cannot use"),
            (format!("key_file = \"{}\"", path("empty")), "it is empty"),
            (
                format!("key_file = \"{}\"", path("two")),
                "more than one line",
            ),
            ("key_command = \"echo s3cret; exit 3\"".to_owned(), "code 3"),
            ("key_command = \"true\"".to_owned(), "it is empty"),
        ] {
            let keys = keys(&setting);
            let findings = of_providers(&keys);
            let found = findings.iter().find(|found| found.area == "keys").unwrap();
            assert_eq!(found.level, Level::Problem, "{found:?}");
            assert!(found.what.contains(why), "{found:?}");
            assert!(!format!("{findings:?}").contains("s3cret"), "{findings:?}");
            assert!(keys.broken("lab").is_some(), "{setting}");
        }
        std::fs::write(path("good"), "s3cret\n").unwrap();
        for setting in [
            format!("key_file = \"{}\"", path("good")),
            "key_command = \"echo s3cret\"".to_owned(),
        ] {
            let keys = keys(&setting);
            assert_eq!(keys.of("lab"), Some(&Unattended::Found), "{setting}");
            assert_eq!(keys.broken("lab"), None);
        }
    }
}
