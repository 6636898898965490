//! `agentd rm`.

use crate::archived;
use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::output::Output;
use agentd_client::api::Archive;

const EXAMPLES: &str = "\
Examples:
  agentd rm coder
  agentd rm coder --reason \"the project is over\"
  agentd rm coder --restore

Nothing is deleted: it is put away, with all it said, and comes back with --restore. `agentd purge` deletes.";

/// Put an agent away; it can be restored
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::archived())]
    name: String,
    /// Why, for whoever reads the log
    #[arg(long, value_name = "TEXT", conflicts_with = "restore")]
    reason: Option<String>,
    /// Take it out again
    #[arg(long)]
    restore: bool,
    /// Print the agent as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let archive = Archive {
        reason: args.reason.clone(),
        restore: args.restore,
    };
    let client = connect::client().await?;
    let id = match args.restore {
        true => archived::under(&client, &args.name).await?,
        false => None,
    };
    let name = id.as_ref().unwrap_or(&args.name);
    let archived = client.archive(name, &archive).await?;
    let name = &archived.agent.name;
    match (args.json, args.restore) {
        (true, _) => out.json(&archived),
        (_, true) => out.line(format_args!("{name} is back")),
        _ => {
            out.line(format_args!("{name} is put away"))?;
            let tasks = archived.ended.tasks.iter().map(ToString::to_string);
            let ended: Vec<String> = archived
                .ended
                .subagents
                .iter()
                .cloned()
                .chain(tasks)
                .collect();
            if !ended.is_empty() {
                out.line(format_args!("  ended with it: {}", ended.join(", ")))?;
            }
            out.line(format_args!(
                "  take it out again: agentd rm {name} --restore"
            ))
        }
    }
}
