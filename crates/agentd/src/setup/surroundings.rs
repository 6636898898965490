//! The variables that an agent gets from outside of its settings.

use agentd_core::catalog::Catalog;
use agentd_core::spec::McpServer;
use agentd_runtime::tools::Secrets;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

/// The variables of an agent: those of this process, or those that the daemon sent.
pub struct Surroundings {
    pub(super) env: BTreeMap<String, String>,
    /// The names of variables that are stored secrets.
    pub(super) stored: BTreeSet<String>,
    /// What hooks have set for the tools. A command in the sandbox can change it: it is added to the environment of tools as
    /// it is, and counts nowhere else.
    pub(super) of_hooks: BTreeMap<String, String>,
    /// The MCP servers that clients lend.
    pub(super) lent: BTreeMap<String, McpServer>,
}

impl Surroundings {
    pub fn own() -> Self {
        let text = |value: OsString| value.into_string().ok();
        let own = std::env::vars_os();
        let own = own.filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        Self::of(own.collect(), BTreeSet::new())
    }

    pub const fn of(env: BTreeMap<String, String>, stored: BTreeSet<String>) -> Self {
        Self {
            env,
            stored,
            of_hooks: BTreeMap::new(),
            lent: BTreeMap::new(),
        }
    }

    pub fn with_hook_variables(self, of_hooks: BTreeMap<String, String>) -> Self {
        Self { of_hooks, ..self }
    }

    pub fn with_lent(self, lent: BTreeMap<String, McpServer>) -> Self {
        Self { lent, ..self }
    }

    pub fn get(&self, name: &str) -> Option<String> {
        let value = self.env.get(name);
        value.filter(|value| !value.is_empty()).cloned()
    }

    /// The values to redact, including the keys of providers that this agent does not use.
    pub(super) fn secrets(&self, catalog: &Catalog) -> Secrets {
        let keys = catalog.key_names();
        Secrets::of_env(&self.env, &keys.union(&self.stored).cloned().collect())
    }
}
