//! `agentd restore`.

use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  agentd restore coder
  agentd restore 0198c5a2-7d1e-7cc3-98c4-dc0c0c07398f

Where several were put away under one name, it is the id that says which: `agentd list --archived`.";

/// Take an agent out again that `agentd rm` put away
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent, by its name or its id
    #[arg(add = complete::archived())]
    name: String,
    /// Print the agent as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    let agent = client.restore(&args.name).await?;
    match args.json {
        true => out.json(&agent),
        false => out.line(format_args!("{} is back", agent.name)),
    }
}
