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

Messages so far are kept. The next prompt is answered; the cancelled work is not resumed. Commands that you run with \
`agentd exec` are ended, too.";

/// Cancel the running turn
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
