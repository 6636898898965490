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

Nothing is deleted: `agentd restore` brings the agent back with all its conversations. `agentd purge` deletes \
content.";

/// Archive an agent; `agentd restore` brings it back
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// Reason, recorded in the journal
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
    out.line(format_args!("{name} is archived"))?;
    let tasks = archived.ended.tasks.iter().map(ToString::to_string);
    let subagents = archived.ended.subagents.iter().cloned();
    let ended: Vec<String> = subagents.chain(tasks).collect();
    if !ended.is_empty() {
        out.line(format_args!("  also ended: {}", ended.join(", ")))?;
    }
    out.line(format_args!("  to restore it: agentd restore {name}"))
}
