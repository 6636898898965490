//! `agentd compact`.

use crate::complete;
use crate::connect;
use crate::error::{Error, Exit};
use crate::output::Output;
use crate::providers;
use agentd_client::api::Compact;
use agentd_core::id::OpId;
use agentd_core::state::CompactionOutcome;

const EXAMPLES: &str = "\
Examples:
  agentd compact coder
  agentd compact coder --instructions \"keep the names of all files\"

The model sums up what was said, and goes on from its summary; the history stays, and `agentd rewind` goes back \
to before it. A turn that is under way ends first. It happens by itself, too, when a conversation gets long: see \
`compact_at` in agent files.
Exit: 0 ok, 1 it failed, 3 refused or conflict, 4 unavailable, 5 a limit is reached, 130 interrupted.";

/// Shorten what the model sees of a conversation to a summary
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// What the summary is to heed
    #[arg(long, value_name = "TEXT")]
    instructions: Option<String>,
    /// An id for this compaction: repeated under the same one, it is made once
    #[arg(long, value_name = "ID")]
    op: Option<OpId>,
    /// Print what came of it as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let compact = Compact {
        instructions: args.instructions.clone(),
        op: args.op,
        env: providers::env(&providers::catalog()?),
    };
    let client = connect::client().await?;
    let compacted = client.compact(&args.name, &compact).await?;
    if args.json {
        out.json(&compacted)?;
    }
    let name = &args.name;
    let not_made = |exit, what: &str| {
        let error = Error::new(exit, format!("{name} is not compacted: {what}"));
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
            "{name} is compacted to about {} tokens",
            compacted.tokens
        )),
        CompactionOutcome::Nothing => out.line(format_args!("{name} has nothing to compact")),
        CompactionOutcome::Interrupted => not_made(Exit::Interrupted, "it was interrupted"),
        CompactionOutcome::Failed => not_made(Exit::Failed, "the model gave no summary"),
        CompactionOutcome::Limited => not_made(Exit::Limited, "a limit is reached"),
        CompactionOutcome::Lost => not_made(Exit::Failed, "its process died again and again"),
    }
}
