//! `agentd fork`.

use crate::complete;
use crate::connect;
use crate::conversation::Which;
use crate::error::Error;
use crate::keys;
use crate::output::Output;
use agentd_client::api::Fork;
use agentd_core::id::OpId;

const EXAMPLES: &str = "\
Examples:
  agentd fork coder coder-2
  agentd fork coder what-if --at 3
  agentd fork coder what-if --at before-the-refactoring --conversation 1

Nothing is copied, and the original agent is not affected. The new agent has its settings, its directory and its \
messages up to that position. It has none of its background tasks, pending approvals or queued prompts, its cost \
starts at zero, and a notice tells it so. Messages that both agents share cannot be purged while both exist.";

/// Create a new agent that continues from a position of an existing one
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::archived())]
    name: String,
    /// The name of the new agent
    new: String,
    /// A label, or a turn by its number or id [default: the current position]
    #[arg(long, value_name = "LABEL|TURN", add = complete::branch_points())]
    at: Option<String>,
    /// The conversation that contains the position [default: the current one]
    #[arg(long, value_name = "ID|N", add = complete::conversations())]
    conversation: Option<Which>,
    /// Id of this fork; a repeated command with the same id creates the agent once
    #[arg(long, value_name = "ID")]
    op: Option<OpId>,
    /// Fail unless the agent still has this generation; `agentd show` prints it
    #[arg(long, value_name = "N")]
    if_generation: Option<u64>,
    /// Print the new agent as one JSON object
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
        name: Some(args.new.clone()),
        at: args.at.clone(),
        conversation,
        op: args.op,
        if_generation: args.if_generation,
        env: keys::env_of(&client, &args.name).await?,
        ..Fork::default()
    };
    let forked = client.fork(&args.name, &fork).await?;
    if args.json {
        return out.json(&forked);
    }
    let (new, name, at) = (&forked.agent.name, &args.name, forked.from.seq);
    out.line(format_args!("{new} continues from event {at} of {name}"))?;
    super::tell_displaced(&forked.agent, out)?;
    if let Some(program) = forked.program {
        out.line(format_args!("  its program: {}", program.words()))?;
    }
    out.line(format_args!("  next: agentd send {new} …"))
}
