//! `agentd files`.

use crate::complete;
use crate::connect;
use crate::conversation::Which;
use crate::error::{Error, Exit};
use crate::keys;
use crate::op::Op;
use crate::output::Output;
use crate::render;
use agentd_client::Client;
use agentd_client::api::{FilesOutcome, FilesQuery, RestoreFiles, RestoredFiles, UndoFiles};
use agentd_daemon::clock;
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  agentd files list coder
  agentd files restore coder --to 3
  agentd files restore coder --to init src/main.rs
  agentd files undo coder

Before a tool changes a file, its content is kept. A restore returns files to what they were when a turn ended, and \
can be undone. Conversations are not changed: see `agentd rewind --files`.";

/// List the files that an agent has changed, restore them, and undo a restore
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List the files that an agent has changed
    #[command(
        after_help = "Examples:\n  agentd files list coder\n  agentd files list coder --since 2 --json"
    )]
    List(List),
    /// Return files to what they were when a turn ended
    #[command(after_help = RESTORE)]
    Restore(Restore),
    /// Undo the last restore; repeat it to undo the one before
    #[command(
        after_help = "Examples:\n  agentd files undo coder\n  agentd files undo coder --overwrite\n\nExit: 0 ok, 1 some files could not be written, 3 refused or conflict, 7 not found."
    )]
    Undo(Undo),
}

const RESTORE: &str = "\
Examples:
  agentd files restore coder --to 3
  agentd files restore coder --to init
  agentd files restore coder --to 2 src/main.rs docs
  agentd files restore coder --to 2 --overwrite

A turn is given by its number or its id and stands for the position at its end; `init` is before the first turn. A \
file that was changed by something else than the agent is a conflict: nothing is written. Name the other files, or \
pass --overwrite. Files that commands changed are restored from git, if it has their content.
Exit: 0 ok, 1 some files could not be written, 3 refused or conflict, 7 not found.";

#[derive(Debug, clap::Args)]
struct List {
    /// The agent
    #[arg(add = complete::archived())]
    name: String,
    /// Only changes after this turn or label
    #[arg(long, value_name = "LABEL|TURN", add = complete::branch_points())]
    since: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Restore {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// Only these files and directories
    #[arg(value_name = "PATH", add = complete::paths())]
    paths: Vec<String>,
    /// A label, or a turn by its number or id
    #[arg(long, value_name = "LABEL|TURN", add = complete::branch_points())]
    to: String,
    /// The conversation that contains the position [default: the current one]
    #[arg(long, value_name = "ID|N", add = complete::conversations())]
    conversation: Option<Which>,
    /// Also restore files that were changed by something else than the agent
    #[arg(long)]
    overwrite: bool,
    /// Print what would be restored, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    op: Op,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Undo {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// Also undo files that were changed since the restore
    #[arg(long)]
    overwrite: bool,
    /// Print what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    op: Op,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    match &args.verb {
        Verb::List(args) => list(&client, args, out).await,
        Verb::Restore(args) => restore(&client, args, out).await,
        Verb::Undo(args) => undo(&client, args, out).await,
    }
}

async fn list(client: &Client, args: &List, out: &mut Output) -> Result<(), Error> {
    let query = FilesQuery {
        since: args.since.clone(),
    };
    let files = client.files(&args.name, &query).await?;
    if args.json {
        return out.json(&files);
    }
    let cwd = client.spec(&args.name).await?.cwd;
    let lines = render::files::changed(&files, cwd.as_deref().map(Path::new), clock::now());
    lines.into_iter().try_for_each(|line| out.line(line))
}

async fn restore(client: &Client, args: &Restore, out: &mut Output) -> Result<(), Error> {
    let conversation = match &args.conversation {
        Some(which) => Some(which.of(client, &args.name).await?),
        None => None,
    };
    let ask = RestoreFiles {
        to: args.to.clone(),
        conversation,
        paths: args.paths.clone(),
        overwrite: args.overwrite,
        dry_run: args.dry_run,
        op: args.op.id,
        env: keys::env_of(client, &args.name).await?,
    };
    let done = client.restore_files(&args.name, &ask).await?;
    tell(&done, args.json, out)
}

async fn undo(client: &Client, args: &Undo, out: &mut Output) -> Result<(), Error> {
    let ask = UndoFiles {
        overwrite: args.overwrite,
        dry_run: args.dry_run,
        op: args.op.id,
        env: keys::env_of(client, &args.name).await?,
    };
    let done = client.undo_files(&args.name, &ask).await?;
    tell(&done, args.json, out)
}

/// Prints what was done. A conflict and a failure are errors.
pub fn tell(done: &RestoredFiles, json: bool, out: &mut Output) -> Result<(), Error> {
    match json {
        true => out.json(done)?,
        false => {
            let mut lines = render::files::restored(done).into_iter();
            lines.try_for_each(|line| out.line(line))?;
        }
    }
    result(done)
}

/// The error of a restore that was not done, or not completely.
pub fn result(done: &RestoredFiles) -> Result<(), Error> {
    match done.outcome {
        FilesOutcome::Done | FilesOutcome::Planned | FilesOutcome::Unchanged => Ok(()),
        FilesOutcome::Conflict => {
            let what = "files were changed by something else than the agent; nothing was written";
            let next = "name the files to restore, or pass --overwrite";
            Err(Error::new(Exit::Refused, what).next(next).printed())
        }
        FilesOutcome::Failed => {
            let what = "some files could not be restored";
            let next = "fix the cause and restore them again";
            Err(Error::new(Exit::Failed, what).next(next).printed())
        }
    }
}
