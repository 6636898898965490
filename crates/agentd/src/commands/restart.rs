//! `agentd restart`.

use super::tell;
use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::output::Output;
use crate::render::time;
use agentd_client::api::Stop;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  agentd restart coder

The turn that is under way is not lost: it goes on in the new process.";

/// Give an agent a new process; its turn goes on there
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// End its background tasks too
    #[arg(long)]
    kill_background: bool,
    /// How long what runs may take to end before it is killed
    #[arg(long, value_name = "TIME", value_parser = time::duration)]
    grace: Option<Duration>,
    /// Print the agent as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let stop = Stop {
        kill_background: args.kill_background,
        grace_ms: args.grace.map(time::millis),
    };
    let agent = connect::client().await?.restart(&args.name, &stop).await?;
    tell(&agent, args.json, out)
}
