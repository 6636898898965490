//! The command line: which verbs there are. Each verb's arguments and help are in its own file.

use crate::commands::{agent, daemon, demo, runtime, verify};
use clap::{Parser, Subcommand};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  agentd demo                              See it keep a conversation through a kill -9
  agentd agent \"What is in this folder?\"   Run an agent here
  agentd verify                            Check your journal

State is kept in $AGENTD_HOME, else in $XDG_STATE_HOME/agentd, else in ~/.local/state/agentd.";

/// Runs AI agents for as long as they are needed, and never loses a conversation
#[derive(Debug, Parser)]
#[command(name = "agentd", version, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    Agent(Box<agent::Args>),
    Daemon(daemon::Args),
    Demo(demo::Args),
    Runtime(runtime::Args),
    Verify(verify::Args),
}

impl Verb {
    /// Whether it listens to signals itself; others are simply dropped at Ctrl-C.
    pub const fn hears_signals(&self) -> bool {
        matches!(self, Self::Agent(_) | Self::Daemon(_) | Self::Runtime(_))
    }
}

/// Help and version are answers; anything else that clap has to say is about wrong usage, exit 2.
pub fn answer(answer: &clap::Error) -> ExitCode {
    // Nobody may be listening; that is no error.
    let _unheard = answer.print();
    ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
