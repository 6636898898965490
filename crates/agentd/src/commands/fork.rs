//! `agentd fork`.

use crate::complete;
use crate::connect;
use crate::conversation::Which;
use crate::error::Error;
use crate::output::Output;
use crate::providers;
use agentd_client::api::Fork;
use agentd_core::id::OpId;

const EXAMPLES: &str = "\
Examples:
  agentd fork coder coder-2
  agentd fork coder what-if --at 3
  agentd fork coder what-if --at before-the-refactoring --conversation 1

Nothing is copied, and the agent itself goes on as if nothing had happened. The new one has its settings, its \
directory and its words up to that place; it has none of its background tasks, questions and prompts that wait, \
its cost begins at nothing, and it is told so. The words that they share cannot be purged while both are there.";

/// Make another agent that goes on from a place of this one
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::archived())]
    name: String,
    /// What the new one is called
    new: String,
    /// A label, or a turn by its number or id [default: where it is now]
    #[arg(long, value_name = "LABEL|TURN")]
    at: Option<String>,
    /// The conversation whose place that is [default: the current one]
    #[arg(long, value_name = "ID|N")]
    conversation: Option<Which>,
    /// An id for the new agent: repeated under the same one, it is made once
    #[arg(long, value_name = "ID")]
    op: Option<OpId>,
    /// Only if the agent is still of this generation, as `agentd show` has it
    #[arg(long, value_name = "N")]
    if_generation: Option<u64>,
    /// Print what was made as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    let conversation = match &args.conversation {
        Some(which) => Some(which.of(&client, &args.name).await?),
        None => None,
    };
    let fork = Fork {
        name: args.new.clone(),
        at: args.at.clone(),
        conversation,
        op: args.op,
        if_generation: args.if_generation,
        env: providers::env(&providers::catalog()?),
    };
    let forked = client.fork(&args.name, &fork).await?;
    if args.json {
        return out.json(&forked);
    }
    let (new, name, at) = (&forked.agent.name, &args.name, forked.from.seq);
    out.line(format_args!("{new} goes on from event {at} of {name}"))?;
    super::tell_displaced(&forked.agent, out)?;
    out.line(format_args!("  next: agentd send {new} …"))
}
