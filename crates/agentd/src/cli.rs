//! The command line: which verbs there are. Each verb's arguments and help are in its own file.

use crate::commands::{
    agent, apply, approve, checkpoint, compact, completions, config, r#continue, conversations,
    create, daemon, demo, deny, edit, export, fork, hooks, import, interrupt, list, logs, purge,
    rename, replay, reset, restart, restore, rewind, rm, run, runtime, send, set, show, start,
    status, stop, tasks, verify, wait,
};
use clap::{Parser, Subcommand};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  agentd demo                              See it keep a conversation through a kill -9
  agentd run \"What is in this folder?\"     Run an agent for one prompt
  agentd create coder                      Make one that stays
  agentd send coder \"Fix the tests\"        Ask it something
  agentd logs -f coder                     Watch it
  agentd reset coder                       Begin anew; --undo takes it back

State is kept in $AGENTD_HOME, else in $XDG_STATE_HOME/agentd, else in ~/.local/state/agentd.";

/// Runs AI agents for as long as they are needed, and never loses a conversation
#[derive(Debug, Parser)]
#[command(name = "agentd", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

/// In the order in which one comes to need them.
#[derive(Debug, Subcommand)]
pub enum Verb {
    Run(run::Args),
    Create(create::Args),
    Send(send::Args),
    Wait(wait::Args),
    Interrupt(interrupt::Args),
    Continue(r#continue::Args),
    Approve(approve::Args),
    Deny(deny::Args),
    Reset(reset::Args),
    Rewind(rewind::Args),
    Fork(fork::Args),
    Compact(compact::Args),
    Start(start::Args),
    Stop(stop::Args),
    Restart(restart::Args),
    List(list::Args),
    Status(status::Args),
    Show(show::Args),
    Logs(logs::Args),
    Replay(replay::Args),
    Conversations(conversations::Args),
    Tasks(tasks::Args),
    Checkpoint(checkpoint::Args),
    Edit(edit::Args),
    Set(set::Args),
    Apply(apply::Args),
    Hooks(hooks::Args),
    Rename(rename::Args),
    Export(export::Args),
    Import(import::Args),
    Rm(rm::Args),
    Restore(restore::Args),
    Purge(purge::Args),
    Daemon(daemon::Args),
    Agent(Box<agent::Args>),
    Config(config::Args),
    Completions(completions::Args),
    Runtime(runtime::Args),
    Verify(verify::Args),
    Demo(demo::Args),
}

impl Verb {
    /// Whether it listens to signals itself; others are simply dropped at Ctrl-C.
    pub const fn hears_signals(&self) -> bool {
        match self {
            Self::Agent(_) | Self::Run(_) | Self::Send(_) | Self::Edit(_) | Self::Runtime(_) => {
                true
            }
            Self::Daemon(args) => args.hears_signals(),
            _ => false,
        }
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
