//! What can be used on this machine: providers with their keys, and servers that answer.

use crate::local;
use crate::providers::{self, KeySource};
use agentd_core::catalog::{Catalog, DEMO, ProviderEntry};
use std::collections::BTreeSet;

/// A provider, and what it needs.
pub struct Candidate {
    pub entry: ProviderEntry,
    pub key: Option<KeySource>,
    /// The models that a server without a key lists; none if it did not answer.
    pub served: Option<Vec<String>>,
    /// A server without a key answered that it wants one.
    wants_key: bool,
}

pub struct Found {
    /// In the order in which providers are chosen, and then the demo.
    pub candidates: Vec<Candidate>,
    pub keyed: BTreeSet<String>,
}

impl Found {
    pub async fn look(catalog: &Catalog) -> Self {
        let stored = providers::stored();
        let mut candidates = Vec::new();
        for entry in catalog.by_precedence().chain(catalog.provider(DEMO)) {
            candidates.push(Candidate::look(entry, &stored).await);
        }
        Self {
            candidates,
            keyed: providers::keyed(catalog, &stored),
        }
    }

    pub fn get(&self, name: &str) -> Option<&Candidate> {
        self.candidates.iter().find(|it| it.entry.name == name)
    }
}

impl Candidate {
    pub async fn look(entry: &ProviderEntry, stored: &BTreeSet<String>) -> Self {
        let (served, wants_key) = match entry.needs_key || entry.is_built_in() {
            true => (None, false),
            false => match local::models(entry).await {
                Ok(models) => (Some(models), false),
                Err(error) => (None, local::wants_key(&error)),
            },
        };
        Self {
            wants_key,
            key: providers::key_source(entry, stored),
            entry: entry.clone(),
            served,
        }
    }

    /// Whether a prompt to it can be answered.
    pub fn is_ready(&self) -> bool {
        match self.entry.needs_key {
            true => self.key.is_some(),
            false => self.entry.is_built_in() || self.served.is_some(),
        }
    }

    /// The model that is proposed.
    pub fn usual_model(&self) -> Option<&str> {
        let listed = self.served.as_ref().and_then(|models| models.first());
        let usual = self.entry.default_model.as_ref();
        usual.or(listed).map(String::as_str)
    }

    /// What is there, or what is missing.
    pub fn state(&self) -> String {
        match (&self.key, &self.served) {
            (Some(KeySource::Variable(name)), _) => format!("key in {name}"),
            (Some(KeySource::Stored(name)), _) => format!("stored key {name}"),
            (Some(KeySource::File(path)), _) => format!("key in {}", path.display()),
            (Some(KeySource::Command), _) => "key from a command".to_owned(),
            (None, Some(models)) => match models.len() {
                1 => "answers, with 1 model".to_owned(),
                count => format!("answers, with {count} models"),
            },
            (None, None) if self.entry.is_built_in() => "built in, needs no key".to_owned(),
            (None, None) if self.entry.needs_key => match self.entry.key_env.first() {
                Some(name) => format!("no key: set {name}"),
                None => "no key".to_owned(),
            },
            (None, None) if self.wants_key => "answers, but wants a key".to_owned(),
            (None, None) => "no answer".to_owned(),
        }
    }

    /// What to do if it is not ready.
    pub fn advice(&self) -> String {
        match self.entry.key_env.first() {
            Some(name) => {
                format!("`export {name}=…` or `agentd secret set {name}`, then `agentd init` again")
            }
            None if self.wants_key => format!(
                "name the variable of its key in config.toml, `[providers.{}] key_env = [\"NAME\"]`, then `agentd init` again",
                self.entry.name
            ),
            None => "start its server, then run `agentd init` again".to_owned(),
        }
    }
}
