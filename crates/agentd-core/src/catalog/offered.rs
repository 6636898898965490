//! The models that a provider offers, as far as the catalog knows.

use super::{Catalog, ModelEntry, ProviderEntry};
use std::collections::BTreeSet;

impl Catalog {
    /// The models of the vendor and the provider's default model, sorted by name. A price is given only if this provider
    /// charges it.
    pub fn offered_by(&self, provider: &ProviderEntry) -> Vec<ModelEntry> {
        let is_vendor = |vendor: &str| {
            let entry = self.provider(vendor);
            let is_same_server = |entry: &ProviderEntry| entry.base_url == provider.base_url;
            vendor == provider.name || entry.is_some_and(is_same_server)
        };
        let known = self.models.values();
        let own = known.filter(|entry| entry.provider.as_deref().is_some_and(is_vendor));
        let mut names: BTreeSet<&str> = own.map(|entry| entry.name.as_str()).collect();
        names.extend(provider.default_model.as_deref());
        let names = names.into_iter();
        names
            .map(|name| self.known_or_named(&provider.name, name))
            .collect()
    }

    /// What is known about a model; its name, if that is all.
    pub fn known_or_named(&self, provider: &str, name: &str) -> ModelEntry {
        let known = self.model(provider, name);
        ModelEntry {
            // The table may have it under a shorter name.
            name: name.to_owned(),
            ..known.unwrap_or_else(|| ModelEntry::of_user(name))
        }
    }

    /// The models of the user's file, which any provider may serve, sorted by name.
    pub fn of_any_provider(&self) -> impl Iterator<Item = &ModelEntry> {
        self.models().filter(|entry| entry.provider.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(catalog: &Catalog, provider: &str) -> Vec<String> {
        let offered = catalog.offered_by(catalog.provider(provider).unwrap());
        offered.into_iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn a_vendor_offers_its_models_at_each_of_its_addresses() {
        let catalog = Catalog::built_in();
        let claude = names(&catalog, "anthropic");
        assert!(claude.iter().any(|name| name == "claude-sonnet-5-5"));
        assert!(claude.iter().all(|name| name.starts_with("claude")));
        assert_eq!(names(&catalog, "openai"), names(&catalog, "openai-chat"));
        assert_eq!(names(&catalog, "demo"), ["demo"]);
        assert!(names(&catalog, "ollama").is_empty());
    }

    #[test]
    fn a_default_model_is_offered_with_what_is_known_about_it() {
        let mut catalog = Catalog::built_in();
        let file = "[providers.ollama]\ndefault_model = \"qwen3\"\n[models.qwen3]\nwindow = 1000\n\
                    [models.other]\nwindow = 2000\n";
        catalog.extend(file, "config.toml").unwrap();
        let offered = catalog.offered_by(catalog.provider("ollama").unwrap());
        assert_eq!(offered.len(), 1);
        assert_eq!(
            (offered[0].name.as_str(), offered[0].window),
            ("qwen3", Some(1000))
        );
        let any: Vec<&str> = catalog
            .of_any_provider()
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(any, ["other", "qwen3"]);
    }
}
