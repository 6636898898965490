//! From the catalog's choice to a provider that is ready for requests.

use super::{Demo, Key, KeyError, Options, Provider, SetUpError, find_key};
use agentd_core::catalog::Choice;
use std::time::Duration;

/// Settings of the caller, which override the catalog and the environment.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    pub base_url: Option<String>,
    /// A key that the caller already has; then none is looked up.
    pub key: Option<Key>,
    /// The pause between two pieces of the built-in model's text.
    pub demo_pause: Option<Duration>,
}

/// Why there is no provider.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    SetUp(#[from] SetUpError),
}

impl ConnectError {
    /// Whether only the key is missing: then the agent waits for a key and has not failed.
    pub const fn is_missing_key(&self) -> bool {
        matches!(self, Self::Key(KeyError::Missing { .. }))
    }
}

/// Sets up a provider and its key. Sends nothing. Blocks if a command has to run to get the key. `env` looks up an
/// environment variable.
pub fn connect(
    choice: &Choice,
    env: &dyn Fn(&str) -> Option<String>,
    overrides: Overrides,
) -> Result<(Provider, Option<Key>), ConnectError> {
    let provider = &choice.provider;
    let from_env = provider.base_url_env.as_deref().and_then(env);
    let Some(address) = provider.address(from_env.as_deref()) else {
        let mut demo = Demo::default();
        demo.pause = overrides.demo_pause.unwrap_or(demo.pause);
        return Ok((Provider::demo(demo), None));
    };
    let address = overrides.base_url.unwrap_or(address);
    let key = match overrides.key {
        Some(key) => Some(key),
        None => find_key(provider, env)?,
    };
    let mut options = Options::new(provider.wire, address, key.clone());
    options.key_env.clone_from(&provider.key_env);
    Ok((Provider::new(options)?, key))
}
