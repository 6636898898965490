//! The models that a session can select: those of the providers whose key is found.

use crate::providers;
use agentd_core::catalog::Catalog;
use agentd_core::spec::AgentSpec;
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default)]
pub struct Models {
    catalog: Option<Catalog>,
    names: BTreeSet<String>,
}

impl Models {
    /// Reads the user's catalog. One that cannot be used is reported where an agent is created.
    pub fn read() -> Self {
        let Ok(catalog) = providers::catalog() else {
            return Self::default();
        };
        let keyed = providers::keyed(&catalog, &providers::stored());
        let keyed: Vec<&str> = keyed.iter().map(String::as_str).collect();
        Self::of(&catalog, &keyed)
    }

    pub fn of(catalog: &Catalog, providers: &[&str]) -> Self {
        let entries = catalog.providers();
        let entries = entries.filter(|entry| providers.contains(&entry.name.as_str()));
        let names = entries.flat_map(|entry| {
            let models = catalog.offered_by(entry).into_iter();
            models.map(|model| format!("{}/{}", entry.name, model.name))
        });
        Self {
            names: names.collect(),
            catalog: Some(catalog.clone()),
        }
    }

    /// `PROVIDER/MODEL` of an agent.
    pub fn current(&self, spec: &AgentSpec) -> Option<String> {
        let provider = spec.provider.as_deref()?;
        let catalog = self.catalog.as_ref()?;
        let model = providers::model_of(catalog, Some(provider), spec.model.as_deref())?;
        Some(format!("{provider}/{model}"))
    }

    /// All names, with the current one.
    pub fn all(&self, current: &str) -> BTreeSet<String> {
        let mut names = self.names.clone();
        names.insert(current.to_owned());
        names
    }

    /// The context window of an agent's model, if it is known.
    pub fn window(&self, spec: &AgentSpec) -> Option<u64> {
        let catalog = self.catalog.as_ref()?;
        let provider = spec.provider.as_deref()?;
        let model = providers::model_of(catalog, Some(provider), spec.model.as_deref())?;
        catalog.model(provider, &model)?.window
    }
}
