//! `agentd conversations`.

use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::output::Output;
use crate::render::tree;
use agentd_daemon::clock;

const EXAMPLES: &str = "\
Examples:
  agentd conversations coder
  agentd conversations coder --json | jq -r .current

Each conversation is shown below its parent; older branches are indented.";

/// Show the tree of an agent's conversations
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::archived())]
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    let all = client.conversations(&args.name).await?;
    if args.json {
        return out.json(&all);
    }
    for line in tree::draw(&all, clock::now()) {
        out.line(line)?;
    }
    Ok(())
}
