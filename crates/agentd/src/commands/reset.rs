//! `agentd reset`.

use crate::complete;
use crate::connect;
use crate::error::{Error, Exit};
use crate::output::Output;
use crate::render::{receipt, time, word};
use agentd_client::api::{Receipt, Reset};
use agentd_core::event::{Direction, Mode};
use agentd_core::id::OpId;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  agentd reset coder
  agentd reset coder --undo
  agentd reset coder --clear-log --reason \"a new feature\"
  agentd reset coder --grace 2s --force --kill-background

The old conversation is sealed and kept; --undo opens it again, over several levels and from anywhere, \
and --redo goes back. The agent keeps its name, settings, folder and background tasks. Prompts that wait \
are set aside with the old conversation, and come back with it.
Exit: 0 ok, 3 refused or conflict, 4 it is still active: try again, or --force.";

/// Begin a new conversation, and keep the old one
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// Go back to the conversation before
    #[arg(long, conflicts_with_all = ["redo", "clear_log"])]
    undo: bool,
    /// Go to the conversation that --undo left
    #[arg(long, conflicts_with = "clear_log")]
    redo: bool,
    /// Let `agentd logs` begin with the new conversation
    #[arg(long)]
    clear_log: bool,
    /// Why, for whoever reads the log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// End what does not end by itself within the grace
    #[arg(long)]
    force: bool,
    /// Do not ask PreReset hooks, which may refuse
    #[arg(long)]
    skip_hooks: bool,
    /// End its background tasks too
    #[arg(long)]
    kill_background: bool,
    /// Take prompts that wait along to the new conversation
    #[arg(long)]
    keep_queue: bool,
    /// How long what runs may take to end
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = time::duration)]
    grace: Duration,
    /// An id for this reset: repeated under the same one, it is done once
    #[arg(long, value_name = "ID")]
    op: Option<OpId>,
    /// Only if the agent is still of this generation, as `agentd show` has it
    #[arg(long, value_name = "N")]
    if_generation: Option<u64>,
    /// Which kind of agent is meant; only persistent ones have a reset
    #[arg(long, default_value = "auto")]
    mode: Which,
    /// Print the receipt as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Which {
    Auto,
    Oneshot,
    Persistent,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    let wanted = match args.mode {
        Which::Auto => None,
        Which::Oneshot => Some(Mode::Oneshot),
        Which::Persistent => Some(Mode::Persistent),
    };
    if let Some(wanted) = wanted {
        let found = client.agent(&args.name).await?.mode;
        if found != wanted {
            let what = format!("{} is {}, not {}", args.name, word(found), word(wanted));
            return Err(Error::new(Exit::Refused, what).next("say --mode auto, or another name"));
        }
    }
    let reset = Reset {
        step: match (args.undo, args.redo) {
            (true, _) => Some(Direction::Undo),
            (_, true) => Some(Direction::Redo),
            _ => None,
        },
        clear_log: args.clear_log,
        reason: args.reason.clone(),
        force: args.force,
        skip_hooks: args.skip_hooks,
        kill_background: args.kill_background,
        keep_queue: args.keep_queue,
        grace_ms: Some(time::millis(args.grace)),
        op: args.op,
        if_generation: args.if_generation,
    };
    let receipt = client.reset(&args.name, &reset).await?;
    match args.json {
        true => out.json(&receipt),
        false => print(args, &receipt, out),
    }
}

fn print(args: &Args, receipt: &Receipt, out: &mut Output) -> Result<(), Error> {
    let (name, new) = (&args.name, receipt.new);
    match args.undo || args.redo {
        true => out.line(format_args!("{name} is back in conversation {new}"))?,
        false => out.line(format_args!("{name} has a new conversation, {new}"))?,
    }
    receipt::print(receipt, out)
}
