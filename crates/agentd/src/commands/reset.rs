//! `agentd reset`.

use crate::complete;
use crate::connect;
use crate::conversation::Which;
use crate::error::Error;
use crate::keys;
use crate::leaving::Leaving;
use crate::output::Output;
use crate::render::receipt;
use agentd_client::api::{Receipt, Reset};
use agentd_core::event::Direction;

const EXAMPLES: &str = "\
Examples:
  agentd reset coder
  agentd reset coder --undo
  agentd reset coder --clear-log --reason \"a new feature\"
  agentd reset coder --grace 2s --force --kill-background

The old conversation is sealed and kept. --undo returns to it; it can be repeated, and works from any \
conversation. --redo reverses an undo. The agent keeps its name, settings, directory, background tasks and background \
subagents; --kill-background ends both. Queued prompts are set aside with the old conversation, and an undo restores them.
Exit: 0 ok, 3 refused or conflict, 4 still active: try again, or --force, 7 not found.";

/// Begin a new conversation and keep the old one
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// Return to the previous conversation
    #[arg(long, conflicts_with_all = ["redo", "clear_log"])]
    undo: bool,
    /// Return to the conversation that --undo left
    #[arg(long, conflicts_with = "clear_log")]
    redo: bool,
    /// Make `agentd logs` start with the new conversation
    #[arg(long)]
    clear_log: bool,
    #[command(flatten)]
    leaving: Leaving,
    /// Print the receipt as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    keys::merge_env(&client, &args.name).await?;
    let reset = Reset {
        step: match (args.undo, args.redo) {
            (true, _) => Some(Direction::Undo),
            (_, true) => Some(Direction::Redo),
            _ => None,
        },
        clear_log: args.clear_log,
        ..args.leaving.ask()
    };
    let receipt = client.reset(&args.name, &reset).await?;
    if args.json {
        return out.json(&receipt);
    }
    let new = Which::from(receipt.new).number(&client, &args.name).await;
    print(args, &receipt, &new, out)
}

fn print(args: &Args, receipt: &Receipt, new: &str, out: &mut Output) -> Result<(), Error> {
    let name = &args.name;
    match args.undo || args.redo {
        true => out.line(format_args!("{name} is back in conversation {new}"))?,
        false => out.line(format_args!("{name} has a new conversation, {new}"))?,
    }
    if args.undo || args.redo {
        // A rewind may have returned files too; the step is only about the conversation.
        out.line(format_args!(
            "  files stay as they are: `agentd files undo {name}` takes back what a rewind restored"
        ))?;
    }
    if args.clear_log {
        out.line(format_args!(
            "  the log was cleared: `agentd logs {name} --all` shows all of it"
        ))?;
    }
    receipt::print(receipt, out)
}
