//! `agentd diff`.

use crate::complete;
use crate::connect;
use crate::conversation::Which;
use crate::error::Error;
use crate::output::Output;
use crate::render;
use agentd_client::api::DiffFiles;

const EXAMPLES: &str = "\
Examples:
  agentd diff coder
  agentd diff coder --turn 3
  agentd diff coder --since 2 src
  agentd diff coder --stat
  agentd diff coder --tree --json | jq -r '.files[].path'

Without --turn and --since, it shows what the turns of the current conversation changed. Files that commands changed \
are found with git and compared with its copy, if it has one. Paths are relative to the agent's working directory.
Exit: 0 ok, 7 not found.";

/// Show what turns changed in files
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::archived())]
    name: String,
    /// Only these files and directories
    #[arg(value_name = "PATH", add = complete::paths())]
    paths: Vec<String>,
    /// Only this turn, by its number or id
    #[arg(long, value_name = "TURN", conflicts_with = "since", add = complete::turns())]
    turn: Option<String>,
    /// Everything after this turn or label
    #[arg(long, value_name = "LABEL|TURN", add = complete::branch_points())]
    since: Option<String>,
    /// The conversation of the turns [default: the current one]
    #[arg(long, value_name = "ID|N", add = complete::conversations())]
    conversation: Option<Which>,
    /// Print counts of lines instead of lines
    #[arg(long)]
    stat: bool,
    /// Also show what subagents changed
    #[arg(long)]
    tree: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    let conversation = match &args.conversation {
        Some(which) => Some(which.of(&client, &args.name).await?),
        None => None,
    };
    let ask = DiffFiles {
        turn: args.turn.clone(),
        since: args.since.clone(),
        conversation,
        paths: args.paths.clone(),
        stat: args.stat,
        tree: args.tree,
    };
    let diff = client.diff(&args.name, &ask).await?;
    if args.json {
        return out.json(&diff);
    }
    let lines = match args.stat {
        true => render::files::stat(&diff),
        false => render::files::diff(&diff),
    };
    lines.into_iter().try_for_each(|line| out.line(line))
}
