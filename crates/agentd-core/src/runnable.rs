//! Whether an agent with certain settings could run: what its process would refuse at its start.

use crate::budget::{self, NoReportedCost, UnknownPrice};
use crate::catalog::{Catalog, Choice, Unresolved};
use crate::spec::{AgentSpec, NoServerTool, ServerTool};

/// Why an agent could not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRunnable {
    #[error(transparent)]
    NoModel(#[from] Unresolved),
    #[error(transparent)]
    NoServerTool(#[from] NoServerTool),
    #[error(transparent)]
    UnknownPrice(#[from] UnknownPrice),
    #[error(transparent)]
    NoReportedCost(#[from] NoReportedCost),
}

impl NotRunnable {
    /// What is wrong, without the reason.
    pub const fn what(&self) -> &'static str {
        match self {
            Self::NoModel(_) => "no model was chosen",
            Self::NoServerTool(_) => "the provider lacks a tool",
            Self::UnknownPrice(_) | Self::NoReportedCost(_) => "the limits cannot be enforced",
        }
    }
}

/// Checks the settings of an agent against the providers and models that exist.
pub fn check(catalog: &Catalog, spec: &AgentSpec) -> Result<(), NotRunnable> {
    if spec.is_outer() {
        return Ok(budget::check_reported(spec)?);
    }
    let choice = catalog.resolve(spec.provider.as_deref(), spec.model.as_deref())?;
    check_with(&choice, spec)
}

/// The same for a provider and model that were found.
pub fn check_with(choice: &Choice, spec: &AgentSpec) -> Result<(), NotRunnable> {
    let wire = choice.provider.wire;
    ServerTool::check(&spec.server_tools, wire, spec.tools.as_deref())?;
    let price = choice.known.as_ref().and_then(|known| known.price);
    Ok(budget::check_price(&spec.limits, price)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Command, Runtime};
    use crate::usage::MicroUsd;

    fn of(provider: &str, model: &str) -> AgentSpec {
        AgentSpec {
            provider: Some(provider.to_owned()),
            model: Some(model.to_owned()),
            ..AgentSpec::default()
        }
    }

    /// Regression: an unknown provider, a server tool that the wire lacks and a money limit without a price were accepted,
    /// and the agent failed at its next start.
    #[test]
    fn settings_that_cannot_run_are_refused() {
        let catalog = Catalog::built_in();
        let what = |spec: &AgentSpec| check(&catalog, spec).map_err(|error| error.what());
        let good = of("anthropic", "claude-sonnet-5-5");
        assert_eq!(what(&good), Ok(()));
        assert_eq!(what(&of("nope", "x")), Err("no model was chosen"));
        assert_eq!(what(&AgentSpec::default()), Err("no model was chosen"));
        let mut searching = of("openai-chat", "gpt-5");
        searching.server_tools = vec![ServerTool::WebSearch];
        assert_eq!(what(&searching), Err("the provider lacks a tool"));
        let mut limited = of("ollama", "local");
        assert_eq!(what(&limited), Ok(()));
        limited.limits.turn.usd = Some(MicroUsd(1));
        assert_eq!(what(&limited), Err("the limits cannot be enforced"));
    }

    #[test]
    fn the_program_of_an_outer_agent_needs_no_model() {
        let mut spec = AgentSpec {
            runtime: Runtime::Command,
            command: Some(Command::default()),
            ..AgentSpec::default()
        };
        assert_eq!(check(&Catalog::built_in(), &spec), Ok(()));
        spec.limits.turn.usd = Some(MicroUsd(1));
        let refused = check(&Catalog::built_in(), &spec);
        assert_eq!(refused, Err(NotRunnable::NoReportedCost(NoReportedCost)));
    }
}
