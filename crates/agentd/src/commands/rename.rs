//! `agentd rename`.

use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::op::Op;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  agentd rename coder backend-coder

The old name becomes an alias and still finds the agent.";

/// Rename an agent
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// The new name
    to: String,
    #[command(flatten)]
    op: Op,
    /// Print the agent as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?.under(args.op.id);
    let agent = client.rename(&args.name, &args.to).await?;
    if args.json {
        return out.json(&agent);
    }
    out.line(format_args!("{} is now called {}", args.name, agent.name))?;
    super::tell_displaced(&agent, out)
}
