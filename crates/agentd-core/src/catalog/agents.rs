//! The section of the user's file about new agents.

use crate::spec::{AgentSpec, ApprovalMode, Network, Reasoning, Rule, Sandbox};
use serde::Deserialize;

/// `[agents]`: what a new agent gets unless its file or the command line says otherwise. It is stored with the
/// agent's settings when the agent is created, so that the journal records what the agent ran with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentDefaults {
    /// The provider and the model of an agent that names no provider; see [`super::Catalog::choose`].
    pub provider: Option<String>,
    pub model: Option<String>,
    pub sandbox: Option<Sandbox>,
    pub network: Option<Network>,
    pub approval: Option<ApprovalMode>,
    pub reasoning: Option<Reasoning>,
    /// In addition to the agent's own rules.
    pub permissions: Vec<Rule>,
}

impl AgentDefaults {
    /// Adds these defaults to the settings of a new agent, except the provider and the model, which depend on each other
    /// and on the keys of the caller.
    pub fn apply(&self, spec: &mut AgentSpec) {
        spec.sandbox = spec.sandbox.or(self.sandbox);
        if spec.sandbox != Some(Sandbox::FullAccess) {
            // With full access there is no sandbox that could restrict the network.
            spec.network = spec.network.take().or_else(|| self.network.clone());
        }
        spec.approval = spec.approval.or(self.approval);
        spec.reasoning = spec.reasoning.or(self.reasoning);
        let new = self.permissions.iter();
        let new: Vec<Rule> = new
            .filter(|rule| !spec.permissions.contains(rule))
            .cloned()
            .collect();
        spec.permissions.extend(new);
    }
}
