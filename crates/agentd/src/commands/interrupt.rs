//! `agentd interrupt`.

use super::tell;
use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::op::Op;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  agentd interrupt coder

What was said so far is kept. The next prompt is answered; the task that was cancelled is not resumed.";

/// Cancel the turn that is under way
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    #[command(flatten)]
    op: Op,
    /// Print the agent as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?.under(args.op.id);
    let agent = client.interrupt(&args.name).await?;
    tell(&agent, args.json, out)
}
