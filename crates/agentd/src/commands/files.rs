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
use agentd_client::api::{
    FileOutcome, FilesOutcome, FilesQuery, NotRestored, RestoreFiles, RestoredFile, RestoredFiles,
    UndoFiles,
};
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
        after_help = "Examples:\n  agentd files undo coder\n  agentd files undo coder --overwrite\n\nExit: 0 ok, 1 some files were not restored, 3 refused or conflict, 7 not found."
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
Exit: 0 ok, 1 some files were not restored, 3 refused or conflict, 7 not found.";

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
    tell(&done, By::Restore, args.json, out)
}

async fn undo(client: &Client, args: &Undo, out: &mut Output) -> Result<(), Error> {
    let ask = UndoFiles {
        overwrite: args.overwrite,
        dry_run: args.dry_run,
        op: args.op.id,
        env: keys::env_of(client, &args.name).await?,
    };
    let done = client.undo_files(&args.name, &ask).await?;
    tell(&done, By::Undo, args.json, out)
}

/// The command that restores files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Restore,
    Undo,
    Rewind,
}

impl By {
    /// What to do about a conflict.
    const fn advice(self) -> &'static str {
        match self {
            Self::Restore => "name the files to restore, or pass --overwrite",
            Self::Undo => "pass --overwrite",
            Self::Rewind => {
                "pass --overwrite, or rewind without --files and name the files to `agentd files restore`"
            }
        }
    }
}

/// Prints what was done. A conflict is an error, and so are files that were not restored.
pub fn tell(done: &RestoredFiles, by: By, json: bool, out: &mut Output) -> Result<(), Error> {
    match json {
        true => out.json(done)?,
        false => {
            let mut lines = render::files::restored(done).into_iter();
            lines.try_for_each(|line| out.line(line))?;
        }
    }
    result(done, by)
}

/// The error of a restore that was not done, or not completely.
pub fn result(done: &RestoredFiles, by: By) -> Result<(), Error> {
    let is_left = done.not_restored.iter().any(NotRestored::is_left);
    match done.outcome {
        FilesOutcome::Conflict => {
            let what = "files are in conflict; nothing was written";
            Err(Error::new(Exit::Refused, what).next(by.advice()).printed())
        }
        FilesOutcome::Done | FilesOutcome::Planned | FilesOutcome::Unchanged if !is_left => Ok(()),
        _ => Err(incomplete(done)),
    }
}

fn incomplete(done: &RestoredFiles) -> Error {
    let what = match done.outcome {
        FilesOutcome::Planned => "some files would not be restored",
        _ => "some files were not restored",
    };
    let error = Error::new(Exit::Failed, what).printed();
    let is_failed =
        |file: &RestoredFile| matches!(file.outcome, FileOutcome::Failed | FileOutcome::Conflict);
    let may_change = |it: &NotRestored| it.why.may_change();
    // What is no longer kept, for example, never is again.
    match done.files.iter().any(is_failed) || done.not_restored.iter().any(may_change) {
        true => error.next("fix the cause and restore them again"),
        false => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_client::api::{AgentRef, CannotRestore};
    use agentd_core::id::{AgentId, OpId};

    fn done(outcome: FilesOutcome, left: &[CannotRestore]) -> RestoredFiles {
        let left = left.iter();
        let left = left.map(|why| NotRestored::new(Some("/a".to_owned()), None, *why));
        RestoredFiles {
            agent: AgentRef {
                id: AgentId::from_bytes([1; 16]),
                name: None,
            },
            op: OpId::from_bytes([2; 16]),
            outcome,
            files: Vec::new(),
            not_restored: left.collect(),
            undo: None,
        }
    }

    #[test]
    fn files_that_were_not_restored_are_an_error_whatever_else_was() {
        use CannotRestore::{CurrentSecret, NoLongerKept, NotChecked};
        let fix = Some("fix the cause and restore them again");
        for (outcome, left, expected) in [
            (FilesOutcome::Done, vec![], None),
            (FilesOutcome::Unchanged, vec![NotChecked], None),
            (FilesOutcome::Done, vec![NoLongerKept], Some((1, None))),
            (FilesOutcome::Planned, vec![NoLongerKept], Some((1, None))),
            (FilesOutcome::Failed, vec![NoLongerKept], Some((1, None))),
            (FilesOutcome::Done, vec![CurrentSecret], Some((1, fix))),
            (FilesOutcome::Failed, vec![CurrentSecret], Some((1, fix))),
        ] {
            let result = result(&done(outcome, &left), By::Restore);
            let found = result.as_ref().err();
            let found = found.map(|error| (error.code(), error.advice()));
            assert_eq!(found, expected, "{outcome:?} {left:?}");
        }
    }

    #[test]
    fn a_conflict_names_what_the_command_can_do() {
        let conflict = done(FilesOutcome::Conflict, &[]);
        let next = |by| {
            let error = result(&conflict, by).unwrap_err();
            error.advice().unwrap_or_default().to_owned()
        };
        assert!(next(By::Restore).starts_with("name the files"));
        assert!(!next(By::Undo).contains("name"));
        assert!(next(By::Rewind).contains("without --files"));
    }
}
