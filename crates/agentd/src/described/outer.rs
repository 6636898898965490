//! The defaults of an agent whose program implements the contract of `agentd agent`.

use crate::error::{Error, Exit};
use agentd_core::budget;
use agentd_core::spec::{AgentSpec, Contract, Runtime};

/// The program and its arguments, separated by spaces.
const COMMAND: &str = "AGENTD_AGENT_COMMAND";
/// More arguments, after those of the contract.
const EXTRA_ARGS: &str = "AGENTD_EXTRA_ARGS";

/// Sets what the user's variables say and the spec does not, and checks the limits.
pub fn apply_defaults(spec: &mut AgentSpec) -> Result<(), Error> {
    budget::check_reported(spec).map_err(|error| {
        Error::new(Exit::Refused, "the limits cannot be enforced").because(error)
    })?;
    let Some(command) = &mut spec.command else {
        return Ok(());
    };
    if spec.runtime != Runtime::Command || command.contract != Some(Contract::Agent) {
        return Ok(());
    }
    if command.program.is_empty() {
        let mut words = words(COMMAND).into_iter();
        match words.next() {
            Some(program) => {
                command.program = program;
                drop(command.args.splice(0..0, words));
            }
            None => {
                let own = std::env::current_exe().map_err(|error| {
                    Error::new(Exit::Unavailable, "the path of this program is unknown")
                        .because(error)
                        .next(format!("set `command.program`, or {COMMAND}"))
                })?;
                command.program = own.display().to_string();
                command.args.insert(0, "agent".to_owned());
            }
        }
    }
    if command.extra_args.is_empty() {
        command.extra_args = words(EXTRA_ARGS);
    }
    Ok(())
}

fn words(variable: &str) -> Vec<String> {
    let value = std::env::var(variable).unwrap_or_default();
    value.split_whitespace().map(str::to_owned).collect()
}
