//! `agentd restart`.

use super::tell;
use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::keys::{self, Supply};
use crate::op::Op;
use crate::output::Output;
use crate::render::time;
use agentd_client::api::Restart;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  agentd restart coder

A running turn is not lost: it continues in the new process.";

/// Replace the process of an agent; a running turn continues in the new one
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// Time that the process gets to exit before it is killed
    #[arg(long, value_name = "TIME", value_parser = time::duration)]
    grace: Option<Duration>,
    #[command(flatten)]
    op: Op,
    /// Print the agent as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?.under(args.op.id);
    let restart = Restart {
        grace_ms: args.grace.map(time::millis),
        env: keys::env_of(&client, &args.name).await?,
    };
    let agent = client.restart(&args.name, &restart).await?;
    let agent = Supply::new(client.clone()).continue_turn(agent).await?;
    tell(&agent, args.json, out)
}
