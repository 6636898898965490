//! Which provider and model a new agent gets if its settings do not say.

use super::{Catalog, Choice, DEMO, ProviderEntry, Unresolved, model};
use std::collections::BTreeSet;

/// Providers that are chosen by their key, in this order. The other providers follow by name.
const ORDER: [&str; 4] = ["anthropic", "openai", "gemini", "openrouter"];
/// Chosen only by name. The key of `openai-chat` is that of `openai`.
const BY_NAME_ONLY: [&str; 2] = ["openai-chat", DEMO];

impl Catalog {
    /// The provider and model of a new agent: what its settings say, else the defaults of the user's file, else a
    /// provider that is ready. `keyed` names the providers whose key was found.
    pub fn choose(
        &self,
        provider: Option<&str>,
        model: Option<&str>,
        keyed: &BTreeSet<String>,
    ) -> Result<Choice, Unresolved> {
        let defaults = &self.agents;
        let of_project = self.project_model.as_deref();
        let model = model.or(of_project.filter(|_| provider.is_none()));
        match (provider, model.or(defaults.model.as_deref())) {
            (Some(_), _) => self.resolve(provider, model),
            (None, Some(chosen)) if model.is_some() || defaults.provider.is_none() => {
                self.resolve(self.provider_of(chosen, keyed), Some(chosen))
            }
            (None, chosen) => match defaults.provider.as_deref() {
                Some(default) => self.resolve(Some(default), chosen),
                None => self.by_key(keyed),
            },
        }
    }

    /// Who serves a model that was named without a provider. A vendor takes precedence over the default provider only
    /// with a key: the default may be a proxy that serves the same model.
    fn provider_of(&self, model: &str, keyed: &BTreeSet<String>) -> Option<&str> {
        let vendor = self.vendor_of(model);
        let default = self.agents.provider.as_deref();
        match (default, vendor) {
            (Some(default), Some(vendor)) if self.base_url(default) == self.base_url(vendor) => {
                Some(default)
            }
            (Some(_), Some(vendor)) if keyed.contains(vendor) => Some(vendor),
            (Some(default), _) => Some(default),
            (None, vendor) => vendor,
        }
    }

    /// The vendor of a model of the table.
    pub(super) fn vendor_of(&self, name: &str) -> Option<&str> {
        self.models.get(model::undated(name))?.provider.as_deref()
    }

    fn base_url(&self, provider: &str) -> Option<&str> {
        self.provider(provider)?.base_url.as_deref()
    }

    /// The first provider that is ready. One that has a default model takes precedence over one without.
    fn by_key(&self, keyed: &BTreeSet<String>) -> Result<Choice, Unresolved> {
        let has_model = |entry: &&&ProviderEntry| entry.default_model.is_some();
        let is_ready = |entry: &&ProviderEntry| match entry.needs_key {
            true => keyed.contains(&entry.name),
            false => entry.default_model.is_some(),
        };
        let ready: Vec<&ProviderEntry> = self.by_precedence().filter(is_ready).collect();
        let first = ready.iter().find(has_model).or(ready.first());
        match first {
            Some(entry) => self.resolve(Some(&entry.name), None),
            None => Err(Unresolved::NoKey),
        }
    }

    /// The providers that are chosen without being named, in this order.
    pub fn by_precedence(&self) -> impl Iterator<Item = &ProviderEntry> {
        let first = ORDER.iter().filter_map(|name| self.provider(name));
        let is_other = |entry: &&ProviderEntry| {
            let name = entry.name.as_str();
            !ORDER.contains(&name) && !BY_NAME_ONLY.contains(&name)
        };
        first.chain(self.providers().filter(is_other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog(text: &str) -> Catalog {
        let mut catalog = Catalog::built_in();
        catalog.extend(text, "config.toml").unwrap();
        catalog
    }

    /// The choice as `provider/model`, or the error.
    fn choose(
        catalog: &Catalog,
        provider: Option<&str>,
        model: Option<&str>,
        keyed: &[&str],
    ) -> Result<String, Unresolved> {
        let keyed = keyed.iter().map(|&name| name.to_owned()).collect();
        let choice = catalog.choose(provider, model, &keyed)?;
        Ok(format!("{}/{}", choice.provider.name, choice.model))
    }

    fn is(found: Result<String, Unresolved>, expected: &str) {
        assert_eq!(found.as_deref(), Ok(expected));
    }

    const LAB: &str = "[providers.lab]\nwire = \"openai_chat\"\nbase_url = \"http://lab/v1\"\n";

    #[test]
    fn the_only_provider_with_a_key_is_chosen() {
        let built_in = Catalog::built_in();
        for (name, model) in [
            ("anthropic", "claude-sonnet-5-5"),
            ("openai", "gpt-5"),
            ("gemini", "gemini-2.5-flash"),
        ] {
            let found = choose(&built_in, None, None, &[name]);
            is(found, &format!("{name}/{model}"));
        }
        let found = choose(&built_in, None, None, &["openrouter"]);
        assert!(matches!(found, Err(Unresolved::NoModel { provider }) if provider == "openrouter"));
    }

    #[test]
    fn several_have_an_order_and_a_default_model_counts_more() {
        let built_in = Catalog::built_in();
        let all = ["openrouter", "gemini", "openai-chat", "openai", "anthropic"];
        is(
            choose(&built_in, None, None, &all),
            "anthropic/claude-sonnet-5-5",
        );
        is(choose(&built_in, None, None, &all[..4]), "openai/gpt-5");
        let lab = catalog(&format!(
            "{LAB}key_env = \"LAB_KEY\"\ndefault_model = \"big\"\n"
        ));
        is(choose(&lab, None, None, &["lab", "openai"]), "openai/gpt-5");
        is(choose(&lab, None, None, &["lab", "openrouter"]), "lab/big");
    }

    #[test]
    fn without_a_key_only_a_server_that_needs_none_is_chosen() {
        let built_in = Catalog::built_in();
        assert_eq!(choose(&built_in, None, None, &[]), Err(Unresolved::NoKey));
        let ollama = catalog("[providers.ollama]\ndefault_model = \"qwen3\"\n");
        is(choose(&ollama, None, None, &[]), "ollama/qwen3");
        is(
            choose(&ollama, None, None, &["gemini"]),
            "gemini/gemini-2.5-flash",
        );
        assert_eq!(
            choose(&catalog(LAB), None, None, &[]),
            Err(Unresolved::NoKey)
        );
    }

    #[test]
    fn the_defaults_of_the_file_come_before_keys() {
        let both = catalog("[agents]\nprovider = \"ollama\"\nmodel = \"qwen3\"\n");
        is(choose(&both, None, None, &["anthropic"]), "ollama/qwen3");
        let provider = catalog("[agents]\nprovider = \"openai-chat\"\n");
        is(
            choose(&provider, None, None, &["anthropic"]),
            "openai-chat/gpt-5",
        );
        let model = catalog("[agents]\nmodel = \"claude-opus-5-5\"\n");
        is(
            choose(&model, None, None, &["openai"]),
            "anthropic/claude-opus-5-5",
        );
        // Both apply together, or not at all.
        is(choose(&both, Some("openai"), None, &[]), "openai/gpt-5");
    }

    #[test]
    fn a_model_without_a_provider_is_the_vendors_if_that_has_a_key() {
        let built_in = Catalog::built_in();
        is(
            choose(&built_in, None, Some("gpt-5"), &["anthropic"]),
            "openai/gpt-5",
        );
        let found = choose(&built_in, None, Some("mystery"), &["anthropic"]);
        assert!(matches!(found, Err(Unresolved::NoProvider { .. })));
        let proxy = catalog(&format!(
            "{LAB}[agents]\nprovider = \"lab\"\nmodel = \"big\"\n"
        ));
        is(choose(&proxy, None, Some("mystery"), &[]), "lab/mystery");
        is(choose(&proxy, None, Some("gpt-5"), &[]), "lab/gpt-5");
        is(
            choose(&proxy, None, Some("gpt-5"), &["openai"]),
            "openai/gpt-5",
        );
        let chat = catalog("[agents]\nprovider = \"openai-chat\"\n");
        is(
            choose(&chat, None, Some("gpt-5-mini"), &["openai"]),
            "openai-chat/gpt-5-mini",
        );
    }
}
