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

A conversation that follows another stands below it; what was left for another branch stands aside.";

/// Draw the tree of an agent's conversations
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
