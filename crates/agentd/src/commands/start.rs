//! `agentd start`.

use super::tell;
use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::keys;
use crate::op::Op;
use crate::output::Output;
use crate::providers;
use agentd_client::api::Start;

const EXAMPLES: &str = "\
Examples:
  agentd start coder

It runs from now on, whenever there is something to do: after `stop`, or after it has failed. Your \
provider keys are handed on to it.";

/// Let an agent run again that was stopped, or has failed
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
    let env = providers::env(&providers::catalog()?);
    let client = connect::client().await?;
    let client = client.under(args.op.id);
    let agent = client.start(&args.name, &Start { env }).await?;
    let agent = keys::go_on(&client, agent).await?;
    tell(&agent, args.json, out)
}
