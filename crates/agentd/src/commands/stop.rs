//! `agentd stop`.

use super::tell;
use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::op::Op;
use crate::output::Output;
use crate::render::time;
use agentd_client::api::Stop;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  agentd stop coder
  agentd stop coder --grace 2s --kill-background

The turn is cancelled and its messages are kept; prompts are queued until `agentd start`. Background tasks \
and subagents continue unless you pass --kill-background.";

/// Stop an agent: cancel its turn and do not run it until `agentd start`
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// Also end the background tasks and subagents
    #[arg(long)]
    kill_background: bool,
    /// Time that the turn gets to end before the process is killed
    #[arg(long, value_name = "TIME", value_parser = time::duration)]
    grace: Option<Duration>,
    #[command(flatten)]
    op: Op,
    /// Print the agent as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let stop = Stop {
        kill_background: args.kill_background,
        grace_ms: args.grace.map(time::millis),
    };
    let client = connect::client().await?.under(args.op.id);
    let agent = client.stop(&args.name, &stop).await?;
    tell(&agent, args.json, out)?;
    if !args.json && !agent.tasks.is_empty() {
        let tasks: Vec<String> = agent.tasks.iter().map(ToString::to_string).collect();
        out.line(format_args!(
            "  still running in the background: {}",
            tasks.join(", ")
        ))?;
    }
    Ok(())
}
