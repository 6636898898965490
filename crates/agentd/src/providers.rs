//! The providers there are, and what of the caller's environment they need.

use crate::error::{Error, Exit};
use crate::home;
use crate::outside;
use agentd_client::api::Env;
use agentd_core::catalog::Catalog;
use agentd_core::environment::is_handed_on;

/// Providers whose key decides, where nobody says who is to serve the model.
const BY_KEY: [&str; 4] = ["anthropic", "openai", "gemini", "openrouter"];

pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What is built in, and what the user's file adds.
pub fn catalog() -> Result<Catalog, Error> {
    let mut catalog = Catalog::built_in();
    let path = home::config()?;
    match std::fs::read_to_string(&path) {
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

/// The provider whose key is there, where neither it nor the model was named.
pub fn provider_by_key(catalog: &Catalog) -> Option<String> {
    let has_key = |name: &&&str| {
        let entry = catalog.provider(name);
        entry.is_some_and(|entry| entry.key_env.iter().any(|name| variable(name).is_some()))
    };
    BY_KEY.iter().find(has_key).map(|name| (*name).to_owned())
}

/// The variables that a new turn may need, by name: keys and addresses of providers, and what tools
/// expect. They travel over the socket, and stay in memory.
pub fn env(catalog: &Catalog) -> Env {
    if outside::is_told() {
        // A command of an agent may not bring any, and would be refused.
        return Env::new();
    }
    let names = catalog
        .providers()
        .flat_map(|entry| entry.key_env.iter().chain(&entry.base_url_env));
    let of_providers = names.filter_map(|name| Some((name.clone(), variable(name)?)));
    of_providers.chain(of_programs()).collect()
}

/// The variables that tools and hooks may have.
pub fn of_programs() -> impl Iterator<Item = (String, String)> {
    let all = std::env::vars_os();
    let readable =
        all.filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()));
    readable.filter(|(name, value)| is_handed_on(name) && !value.is_empty())
}
