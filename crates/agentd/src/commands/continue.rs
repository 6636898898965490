//! `agentd continue`.

use super::tell;
use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::op::Op;
use crate::output::Output;
use crate::providers;
use agentd_client::api::Start;

const EXAMPLES: &str = "\
Examples:
  agentd set coder limits.turn.usd=5
  agentd continue coder

Continues a turn that ended at a limit which you have raised since, a turn that waits after a crash \
(`on_crash: wait`), or a turn that waits for a provider key: the keys in your environment are passed on.";

/// Continue a turn that ended at a limit or is waiting
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
    let agent = client.continue_turn(&args.name, &Start::with(env)).await?;
    tell(&agent, args.json, out)
}
