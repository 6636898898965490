//! `agentd compact`.

use crate::complete;
use crate::connect;
use crate::error::{Error, Exit};
use crate::keys;
use crate::output::Output;
use agentd_client::api::Compact;
use agentd_core::id::OpId;
use agentd_core::state::CompactionOutcome;

const EXAMPLES: &str = "\
Examples:
  agentd compact coder
  agentd compact coder --instructions \"keep the names of all files\"

The model writes a summary of the conversation and continues from it. The history is kept, and `agentd rewind` can \
return to a position before the compaction. A running turn ends first. Long conversations are also compacted \
automatically: see `compact_at` in agent files.
Exit: 0 ok, 1 failed, 3 refused or conflict, 4 unavailable, 5 a limit was reached, 130 interrupted.";

/// Replace older messages in the model's window by a summary
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// Instructions for the summary
    #[arg(long, value_name = "TEXT")]
    instructions: Option<String>,
    /// Id of this compaction; a repeated command with the same id compacts once
    #[arg(long, value_name = "ID")]
    op: Option<OpId>,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    let compact = Compact {
        instructions: args.instructions.clone(),
        op: args.op,
        env: keys::env_of(&client, &args.name).await?,
    };
    let compacted = client.compact(&args.name, &compact).await?;
    if args.json {
        out.json(&compacted)?;
    }
    let name = &args.name;
    let not_made = |exit, what: &str| {
        let error = Error::new(exit, format!("{name} was not compacted: {what}"));
        let error = match args.json {
            true => error.printed(),
            false => error,
        };
        Err(match &compacted.error {
            Some(why) => error.because(why),
            None => error,
        })
    };
    match compacted.outcome {
        _ if args.json && compacted.outcome == CompactionOutcome::Compacted => Ok(()),
        CompactionOutcome::Nothing if args.json => Ok(()),
        CompactionOutcome::Compacted => out.line(format_args!(
            "{name} was compacted to about {} tokens",
            compacted.tokens
        )),
        CompactionOutcome::Nothing => out.line(format_args!("{name} has nothing to compact")),
        CompactionOutcome::Interrupted => not_made(Exit::Interrupted, "it was interrupted"),
        CompactionOutcome::Failed => not_made(Exit::Failed, "the model returned no summary"),
        CompactionOutcome::Limited => not_made(Exit::Limited, "a limit was reached"),
        CompactionOutcome::Lost => not_made(Exit::Failed, "its process died repeatedly"),
    }
}
