//! The section of the user's file about new agents.

use crate::spec::{
    AgentSpec, ApprovalMode, LimitDefaults, McpServer, Network, Pass, Reasoning, Rule, Sandbox,
    ServerTool, Verbosity,
};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

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
    pub verbosity: Option<Verbosity>,
    pub fast: Option<bool>,
    /// For the limits that the agent does not set.
    pub limits: LimitDefaults,
    /// In addition to the agent's own rules.
    pub permissions: Vec<Rule>,
    /// In addition to the agent's own.
    pub pass_env: Vec<String>,
    pub pass: Vec<Pass>,
    pub server_tools: Vec<ServerTool>,
    /// Servers of the agent's own with the same name take precedence.
    pub mcp: BTreeMap<String, McpServer>,
}

impl AgentDefaults {
    /// Adds these defaults to the settings of a new agent, except the provider and the model, which depend on each other
    /// and on the keys of the caller. `given` names the limits that the agent's file or the command line sets: a limit has a
    /// value in any case.
    pub fn apply(&self, spec: &mut AgentSpec, given: &BTreeSet<String>) {
        spec.sandbox = spec.sandbox.or(self.sandbox);
        if spec.sandbox != Some(Sandbox::FullAccess) {
            // With full access there is no sandbox that could restrict the network.
            spec.network = spec.network.take().or_else(|| self.network.clone());
        }
        spec.approval = spec.approval.or(self.approval);
        spec.reasoning = spec.reasoning.or(self.reasoning);
        spec.verbosity = spec.verbosity.or(self.verbosity);
        spec.fast = spec.fast.or(self.fast);
        self.limits.apply(&mut spec.limits, given);
        add(&mut spec.permissions, &self.permissions);
        add(&mut spec.pass_env, &self.pass_env);
        add(&mut spec.pass, &self.pass);
        add(&mut spec.server_tools, &self.server_tools);
        for (name, server) in &self.mcp {
            let entry = spec.mcp.entry(name.clone());
            entry.or_insert_with(|| server.clone());
        }
    }
}

/// Adds the items that are not in the list.
pub(super) fn add<T: Clone + PartialEq>(list: &mut Vec<T>, more: &[T]) {
    let new = more.iter().filter(|item| !list.contains(item));
    let new: Vec<T> = new.cloned().collect();
    list.extend(new);
}
