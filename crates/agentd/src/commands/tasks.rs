//! `agentd tasks`.

use crate::clock;
use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::output::Output;
use crate::render::table::{Head, table};
use crate::render::time;

const EXAMPLES: &str = "\
Examples:
  agentd tasks coder
  agentd tasks coder --json | jq '.tasks[] | select(.running)'

Background tasks outlive their turn, the agent's process, the daemon and a reset.";

/// List the processes that an agent's tools have left running
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let tasks = connect::client().await?.tasks(&args.name).await?;
    if args.json {
        return out.json(&tasks);
    }
    if tasks.tasks.is_empty() {
        return out.line(format_args!("{} has no background tasks", args.name));
    }
    let now = clock::now();
    let rows = tasks.tasks.iter().map(|task| {
        let state = match task.running {
            true => "running",
            false => "ended",
        };
        vec![
            task.id.to_string(),
            task.tool.clone(),
            state.to_owned(),
            time::ago(task.started_at, now),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let head = ["TASK", "TOOL", "STATE", "STARTED"].map(Head::Kept);
    for line in table(&head, &rows, out.width()) {
        out.line(line)?;
    }
    Ok(())
}
