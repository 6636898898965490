//! `agentd checkpoint`.

use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::op::Op;
use crate::output::Output;
use agentd_client::api::Checkpoint;

const EXAMPLES: &str = "\
Examples:
  agentd checkpoint coder
  agentd checkpoint coder before-the-refactoring

`init` and `session-latest` are set automatically: the beginning of a conversation, and the end of its last \
turn.";

/// Label the current position of an agent's conversation
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// The label [default: one with the current time]
    label: Option<String>,
    #[command(flatten)]
    op: Op,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let checkpoint = Checkpoint {
        label: args.label.clone(),
    };
    let client = connect::client().await?.under(args.op.id);
    let set = client.checkpoint(&args.name, &checkpoint).await?;
    if args.json {
        return out.json(&set);
    }
    out.line(format_args!(
        "{}: event {} is labelled `{}`",
        args.name, set.seq, set.label
    ))
}
