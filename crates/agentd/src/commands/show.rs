//! `agentd show`.

use crate::complete;
use crate::connect;
use crate::conversation::Which;
use crate::error::Error;
use crate::output::Output;
use crate::providers;
use crate::render;
use agentd_daemon::clock;

const EXAMPLES: &str = "\
Examples:
  agentd show coder
  agentd show coder --json | jq -r .phase
  agentd show coder --spec > coder.md
  agentd show coder --conversation 2

--conversation shows the origin, the labels and the turns of a conversation; `agentd rewind` and `agentd fork` \
accept the labels and the turns as positions.";

/// Show one agent in detail
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::archived())]
    name: String,
    /// Print its spec instead, as a file for `agentd apply`
    #[arg(long)]
    spec: bool,
    /// Show one of its conversations instead, by its id or number
    #[arg(long, value_name = "ID|N", conflicts_with = "spec", add = complete::conversations())]
    conversation: Option<Which>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    if args.spec {
        let spec = client.spec(&args.name).await?;
        return match args.json {
            true => out.json(&spec),
            false => out.line(spec.to_markdown().trim_end()),
        };
    }
    if let Some(which) = &args.conversation {
        let one = client.conversation(&args.name, &which.to_string()).await?;
        if args.json {
            return out.json(&one);
        }
        let all = client.conversations(&args.name).await?;
        for line in render::conversation::list(&one, &all, clock::now()) {
            out.line(line)?;
        }
        return Ok(());
    }
    let agent = client.agent(&args.name).await?;
    if args.json {
        return out.json(&agent);
    }
    let agent = providers::with_model(agent);
    for line in render::agent::list(&agent, clock::now()) {
        out.line(line)?;
    }
    Ok(())
}
