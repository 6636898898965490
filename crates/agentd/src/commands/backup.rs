//! `agentd backup`.

use crate::connect;
use crate::error::{Error, Exit};
use crate::output::{GOOD, Output};
use crate::outside;
use crate::render::{count, size};
use agentd_client::api::{BackUp, Backup};
use agentd_daemon::backup::{self, Progress, Step, VerifiedBackup, Watch};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

const EXAMPLES: &str = "\
Examples:
  agentd backup /srv/backups
  agentd backup /srv/backups --incremental
  agentd backup before-upgrade.backup
  agentd backup --verify /srv/backups/agentd-20261117T160812345Z-0a1b2c3d.backup

Writes one file with all agents as they are at one moment, while they run: journals, kept output of tools, hooks and settings. \
It contains no stored secrets, no keys and no files of working directories. In a directory, the file gets a name of its own. \
--force replaces an earlier backup or an empty file, and nothing else: no other file, no link and no device. An \
incremental backup has only what the newest backup of this home in the same directory does not have, and needs that one to be \
restored. `agentd restore-backup` restores; `[backup]` in config.toml makes backups from time to time.

Exit: 0 done, 1 --verify has found damage, 3 refused (the file exists, another backup is being made), 4 unavailable.";

/// Back up all agents to one file, while they run
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file; or a directory, in which the backup gets a name of its own
    #[arg(value_name = "FILE|DIR", value_hint = clap::ValueHint::AnyPath)]
    to: PathBuf,
    /// Only what the newest backup in the same directory does not have
    #[arg(long)]
    incremental: bool,
    /// Check an existing backup, and those that it needs, without restoring it
    #[arg(long, conflicts_with_all = ["incremental", "force"])]
    verify: bool,
    /// Replace an existing backup
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let path = absolute(&args.to)?;
    if args.verify {
        return verify(path, args.json, out).await;
    }
    let ask = BackUp {
        to: path.display().to_string(),
        incremental: args.incremental,
        replace: args.force,
    };
    if path.to_str().is_none() {
        let what = format!("{} is not valid UTF-8", path.display());
        return Err(Error::new(Exit::Usage, what).next("use another name"));
    }
    let client = connect::client().await?;
    let made = client
        .back_up(&ask, |progress| {
            // A terminal that is gone does not end the backup.
            let _gone = show(out, "backing up", progress.bytes, progress.of);
        })
        .await
        .map_err(not_made)?;
    match args.json {
        true => out.json(&made),
        false => print(&made, out),
    }
}

/// A daemon that ends leaves no partial backup under the name. It may have ended just before it could answer.
fn not_made(error: agentd_client::Error) -> Error {
    let is_gone = error.is_gone();
    let error = Error::from(error);
    match is_gone {
        true => error
            .about("the daemon ended before it reported a complete backup")
            .next(
                "run the command again; earlier backups are unchanged, and no partial one is left",
            ),
        false => error,
    }
}

fn print(made: &Backup, out: &mut Output) -> Result<(), Error> {
    out.line(format_args!(
        "{} and {} were backed up to {} ({})",
        count(made.agents, "agent"),
        count(made.events, "event"),
        made.file,
        size(made.bytes)
    ))?;
    if let Some(parent) = &made.parent {
        out.line(format_args!("  incremental: it needs {parent}"))?;
    }
    if let Some(why) = &made.why_full {
        out.line(format_args!("  not incremental: {why}"))?;
    }
    Ok(())
}

async fn verify(path: PathBuf, json: bool, out: &mut Output) -> Result<(), Error> {
    let scratch = std::env::temp_dir();
    let checked = watched(out, "checking", |watch| {
        backup::verify(path, scratch, watch)
    })
    .await?;
    if json {
        return out.json(&checked);
    }
    let VerifiedBackup {
        file,
        agents,
        events,
        files,
        ..
    } = &checked;
    out.line(format_args!(
        "{GOOD}✓{GOOD:#} {file}: {}, {}, {}, no damage",
        count(*agents, "agent"),
        count(*events, "event"),
        count(*files, "file"),
    ))?;
    if checked.incremental {
        let needs = checked.chain.len().saturating_sub(1);
        let earlier = count(needs as u64, "earlier backup");
        out.line(format_args!("  it needs {earlier}, also without damage"))?;
    }
    Ok(())
}

/// Does work that reads a backup, and shows how far it has come. At SIGTERM or Ctrl-C the work ends at its next step, and deletes
/// what it has made; if it is complete by then, or cannot be ended any more, that is its result. It ends in the same way when
/// this future is dropped.
pub async fn watched<T, F>(
    out: &mut Output,
    what: &str,
    work: impl FnOnce(Watch) -> F,
) -> Result<T, Error>
where
    F: Future<Output = backup::Result<T>>,
{
    let course = Arc::new(Course::default());
    let (progress, mut seen) = watch::channel(0);
    let mut terminated = signal(SignalKind::terminate()).map_err(Error::no_runtime)?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(Error::no_runtime)?;
    let of_work = Arc::clone(&course);
    let watch: Watch = Arc::new(move |now: Progress| {
        progress.send_replace(now.bytes);
        of_work.goes_on(now.step)
    });
    let mut work = std::pin::pin!(work(watch));
    // Dropped before the work.
    let cancels = Cancels(course);
    loop {
        tokio::select! {
            done = &mut work => return done.map_err(of_backup),
            Some(()) = terminated.recv() => cancels.0.signalled()?,
            Some(()) = interrupted.recv() => cancels.0.signalled()?,
            Ok(()) = seen.changed() => {
                let bytes = *seen.borrow_and_update();
                show(out, what, bytes, None)?;
            }
        }
    }
}

/// Whether the work is cancelled. Decided once: by the first signal, or by the last step of the work.
#[derive(Default)]
struct Course(Mutex<Decision>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Decision {
    #[default]
    Open,
    Cancelled,
    Completes,
}

impl Course {
    /// Decides what is still open. Returns what was decided before.
    fn decide(&self, decision: Decision) -> Decision {
        let mut decided = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *decided;
        if before == Decision::Open {
            *decided = decision;
        }
        before
    }

    fn goes_on(&self, step: Step) -> bool {
        let before = match step {
            Step::More => self.decide(Decision::Open),
            Step::Last => self.decide(Decision::Completes),
        };
        before != Decision::Cancelled
    }

    /// The work ends at its next step. The second signal does not wait for that. Work that completes is waited for: the command
    /// must not say that it was interrupted.
    fn signalled(&self) -> Result<(), Error> {
        match self.decide(Decision::Cancelled) {
            Decision::Cancelled => Err(Error::interrupted()),
            Decision::Open | Decision::Completes => Ok(()),
        }
    }
}

/// Cancels the work when it is dropped.
struct Cancels(Arc<Course>);

impl Drop for Cancels {
    fn drop(&mut self) {
        self.0.decide(Decision::Cancelled);
    }
}

fn show(out: &mut Output, what: &str, bytes: u64, of: Option<u64>) -> Result<(), Error> {
    match of.filter(|of| *of > 0) {
        Some(of) => {
            let percent = bytes.saturating_mul(100) / of;
            out.progress(format_args!("{what}: {} ({percent} %)", size(bytes)))
        }
        None => out.progress(format_args!("{what}: {}", size(bytes))),
    }
}

/// An error about a backup, as the user sees it.
pub fn of_backup(error: backup::Error) -> Error {
    if matches!(error, backup::Error::Cancelled) {
        return Error::interrupted();
    }
    let next = error.next();
    let shown = match &error {
        backup::Error::Store(error) => Error::of_store("the backup cannot be used", error),
        backup::Error::Io { path, source } => {
            Error::of_file(format!("{} cannot be used", path.display()), source)
        }
        error if error.is_of_backup() => Error::new(Exit::Failed, error.to_string()),
        backup::Error::NotABackup { .. } | backup::Error::OldHome { .. } => {
            Error::new(Exit::Usage, error.to_string())
        }
        backup::Error::Newer { .. } => Error::new(Exit::Unavailable, error.to_string()),
        _ => Error::new(Exit::Refused, error.to_string()),
    };
    match next {
        Some(next) => shown.next(next),
        None => shown,
    }
}

/// The path without `..` of the current directory. The daemon has another one.
pub fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|error| {
        let what = format!("{} cannot be used", path.display());
        Error::of_file(what, &error)
    })
}

/// Tools of an agent may not replace a home.
pub fn check_caller(what: &str) -> Result<(), Error> {
    match outside::is_in_task() {
        true => Err(Error::new(Exit::Refused, what).next("run it in a terminal of your own")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_ends_work_at_its_next_step_and_the_second_one_the_command() {
        let course = Course::default();
        assert!(course.goes_on(Step::More));
        assert!(course.signalled().is_ok());
        assert!(!course.goes_on(Step::More) && !course.goes_on(Step::Last));
        assert!(course.signalled().is_err());
    }

    /// Regression: at the second signal the command said that it was interrupted, and the home was restored.
    #[test]
    fn no_signal_ends_work_that_completes() {
        let course = Course::default();
        assert!(course.goes_on(Step::More) && course.goes_on(Step::Last));
        for _ in 0..3 {
            assert!(course.signalled().is_ok());
        }
        assert!(course.goes_on(Step::Last));
    }
}
