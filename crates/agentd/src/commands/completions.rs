//! `agentd completions`.

use crate::complete;
use crate::error::Error;
use crate::output::Output;
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  agentd completions bash >> ~/.bashrc
  agentd completions zsh >> ~/.zshrc
  agentd completions fish > ~/.config/fish/completions/agentd.fish

Names of agents are completed while a daemon is running. agentd must be in your PATH.";

/// Print a completion script for your shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell
    shell: Shell,
    /// Print the script in one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
    };
    let mut script = Vec::new();
    let (variable, name) = (complete::VARIABLE, "agentd");
    shell
        .write_registration(variable, name, name, name, &mut script)
        .map_err(|error| Error::of_output(&error))?;
    let script = String::from_utf8_lossy(&script);
    let script = script.trim_end();
    match args.json {
        true => out.json(&json!({ "shell": shell.name(), "script": script })),
        false => out.line(script),
    }
}
