//! `agentd rewind`.

use super::files;
use crate::complete;
use crate::connect;
use crate::conversation::Which;
use crate::error::Error;
use crate::keys;
use crate::leaving::Leaving;
use crate::output::Output;
use crate::render::receipt;
use crate::rewound::with_files;
use agentd_client::Client;
use agentd_client::api::{Receipt, Rewind};

const EXAMPLES: &str = "\
Examples:
  agentd rewind coder --to 3
  agentd rewind coder --to before-the-refactoring
  agentd rewind coder --to session-latest --conversation 1
  agentd rewind coder --to init --grace 2s --force
  agentd rewind coder --to 3 --files

A turn is given by its number or its id and stands for the position at its end; `agentd show NAME --conversation N` \
lists the turns and the labels. Later messages are kept in the old conversation, and `agentd reset --undo` returns \
to it. With --files, files return to what they were there, and `agentd files undo` takes that back; otherwise they \
are not changed. Background tasks and subagents continue.
Exit: 0 ok, 1 some files were not restored, 3 refused or conflict, 4 still active: try again, or --force, 7 not found.";

/// Go back to an earlier position of a conversation and keep what came after
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// A label, or a turn by its number or id
    #[arg(long, value_name = "LABEL|TURN", add = complete::branch_points())]
    to: String,
    /// The conversation that contains the position [default: the current one]
    #[arg(long, value_name = "ID|N", add = complete::conversations())]
    conversation: Option<Which>,
    /// Also return files to what they were at this position
    #[arg(long)]
    files: bool,
    /// With --files: also files that were changed by something else than the agent
    #[arg(long, requires = "files")]
    overwrite: bool,
    #[command(flatten)]
    leaving: Leaving,
    /// Print the receipt as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    keys::merge_env(&client, &args.name).await?;
    let conversation = match &args.conversation {
        Some(which) => Some(which.of(&client, &args.name).await?),
        None => None,
    };
    let rewind = Rewind::new(args.to.clone(), conversation, args.leaving.ask());
    if args.files {
        let rewound = with_files(&client, &args.name, &rewind, args.overwrite).await?;
        match (args.json, &rewound.receipt) {
            (true, _) => out.json(&rewound)?,
            (false, Some(receipt)) => print(args, &client, receipt, out).await?,
            (false, None) => {}
        }
        if let Some(failed) = rewound.failed {
            let what = "the conversation was rewound, and its files were not restored";
            return Err(failed.about(what).printed());
        }
        return match &rewound.files {
            Some(files) if args.json => files::result(files, files::By::Rewind),
            Some(files) => files::tell(files, files::By::Rewind, false, out),
            None => Ok(()),
        };
    }
    let receipt = client.rewind(&args.name, &rewind).await?;
    match args.json {
        true => out.json(&receipt),
        false => print(args, &client, &receipt, out).await,
    }
}

async fn print(
    args: &Args,
    client: &Client,
    receipt: &Receipt,
    out: &mut Output,
) -> Result<(), Error> {
    let (name, to) = (&args.name, &args.to);
    let new = Which::from(receipt.new).number(client, name).await;
    out.line(format_args!(
        "{name} is back at {to}, in conversation {new}"
    ))?;
    receipt::print(receipt, out)
}
