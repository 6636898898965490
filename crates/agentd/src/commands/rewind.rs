//! `agentd rewind`.

use crate::complete;
use crate::connect;
use crate::conversation::Which;
use crate::error::Error;
use crate::output::Output;
use crate::render::{receipt, time};
use agentd_client::api::Rewind;
use agentd_core::id::OpId;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  agentd rewind coder --to 3
  agentd rewind coder --to before-the-refactoring
  agentd rewind coder --to session-latest --conversation 1
  agentd rewind coder --to init --grace 2s --force

A turn is named by its number or its id, and meant as it ended; `agentd show NAME --conversation N` lists the \
turns and the labels. What came after that place is kept in the conversation that is left, and `agentd reset \
--undo` goes back to it. Files are left as they are, and background tasks go on.
Exit: 0 ok, 3 refused or conflict, 4 it is still active: try again, or --force.";

/// Go back to an earlier place of a conversation, and keep what came after
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// A label, or a turn by its number or id
    #[arg(long, value_name = "LABEL|TURN")]
    to: String,
    /// The conversation whose place that is [default: the current one]
    #[arg(long, value_name = "ID|N")]
    conversation: Option<Which>,
    /// Why, for whoever reads the log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// End what does not end by itself within the grace
    #[arg(long)]
    force: bool,
    /// Ask no hook
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
    /// An id for this rewind: repeated under the same one, it is done once
    #[arg(long, value_name = "ID")]
    op: Option<OpId>,
    /// Only if the agent is still of this generation, as `agentd show` has it
    #[arg(long, value_name = "N")]
    if_generation: Option<u64>,
    /// Print the receipt as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    let conversation = match &args.conversation {
        Some(which) => Some(which.of(&client, &args.name).await?),
        None => None,
    };
    let rewind = Rewind {
        to: args.to.clone(),
        conversation,
        reason: args.reason.clone(),
        force: args.force,
        skip_hooks: args.skip_hooks,
        kill_background: args.kill_background,
        keep_queue: args.keep_queue,
        grace_ms: Some(time::millis(args.grace)),
        op: args.op,
        if_generation: args.if_generation,
    };
    let receipt = client.rewind(&args.name, &rewind).await?;
    if args.json {
        return out.json(&receipt);
    }
    let (name, to, new) = (&args.name, &args.to, receipt.new);
    out.line(format_args!(
        "{name} is back at {to}, in conversation {new}"
    ))?;
    receipt::print(&receipt, out)
}
