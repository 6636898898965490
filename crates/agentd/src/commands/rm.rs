//! `agentd rm`.

use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::op::Op;
use crate::output::Output;
use agentd_client::api::Archive;

const EXAMPLES: &str = "\
Examples:
  agentd rm coder
  agentd rm coder --reason \"the project is over\"

Nothing is deleted: it is put away, with all it said, and comes back with `agentd restore`. `agentd purge` deletes.";

/// Put an agent away; it can be restored
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// Why, for whoever reads the log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    op: Op,
    /// Print the agent as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let reason = args.reason.clone();
    let client = connect::client().await?.under(args.op.id);
    let archived = client.archive(&args.name, &Archive { reason }).await?;
    if args.json {
        return out.json(&archived);
    }
    let name = &archived.agent.name;
    out.line(format_args!("{name} is put away"))?;
    let tasks = archived.ended.tasks.iter().map(ToString::to_string);
    let subagents = archived.ended.subagents.iter().cloned();
    let ended: Vec<String> = subagents.chain(tasks).collect();
    if !ended.is_empty() {
        out.line(format_args!("  ended with it: {}", ended.join(", ")))?;
    }
    out.line(format_args!("  take it out again: agentd restore {name}"))
}
