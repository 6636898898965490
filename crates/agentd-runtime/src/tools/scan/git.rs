//! Asks git which files differ from the newest commit, as a command of the agent: a repository's configuration can execute
//! programs.

use super::status::Status;
use crate::tools::blocking;
use crate::tools::context::ToolContext;
use crate::tools::failure::Failure;
use agentd_core::event::ScanProblem;
use agentd_files::own;
use agentd_process::task::{self, Exit, Found, Order};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// How long git may take.
const TIME: Duration = Duration::from_millis(200);
/// How long the sandbox and the end of the task may take in addition.
const PATIENCE: Duration = Duration::from_secs(2);
pub(super) const MOST_FILES: usize = 10_000;
/// Enough for that many names of usual length.
const OUTPUT_BYTES: u64 = 4 * 1024 * 1024;
/// The exit code of a shell that does not find the program, and of [`GIT`] without a repository.
const NOT_FOUND: i32 = 127;

/// First the root of the work tree, then the newest commit and the status, with untracked files as the argument says.
/// `status` writes nothing, and reads neither submodules nor what a monitor says. The names of objects are complete.
const GIT: &str = "root=$(git rev-parse --show-toplevel) || exit 127; printf '%s\\0' \"$root\"; \
                   exec git --no-optional-locks -c core.fsmonitor=false -c core.untrackedCache=false -c core.quotePath=false \
                   status --porcelain=v2 -z --untracked-files=\"$1\" --no-renames --ignore-submodules=all --branch --no-ahead-behind";

/// Whether git lists files that it does not know.
#[derive(Clone, Copy)]
pub(super) enum Untracked {
    All,
    No,
}

/// The root of the work tree, and the files that differ from the newest commit.
pub(super) async fn status(
    context: &Arc<ToolContext>,
    untracked: Untracked,
) -> Result<(PathBuf, Status), ScanProblem> {
    let at = Arc::clone(context);
    let found =
        blocking::whole(move || at.on_thread(|| Ok::<_, Failure>(may_have_work_tree(&at.cwd))));
    if !found.await.is_ok_and(|found| found.unwrap_or_default()) {
        return Err(ScanProblem::NoGit);
    }
    let dir = context.state.join("scans").join(Uuid::now_v7().to_string());
    let output = run(context, &dir, untracked).await;
    let output = tokio::task::spawn_blocking(move || {
        let read =
            output.and_then(|exit| Ok((own::read(dir.join("output")).map_err(failed)?, exit)));
        // A directory that stays is removed with the agent.
        drop(fs::remove_dir_all(&dir));
        read
    });
    let (output, exit) = output.await.map_err(|_| ScanProblem::Failed)??;
    let (root, output) = rooted(&output).ok_or(ScanProblem::Failed)?;
    let mut status = Status::read(output, MOST_FILES);
    if exit.dropped_bytes > 0 {
        status.more += 1;
    }
    Ok((root, status))
}

/// Without this, git is not started at all. Which directory is the root of the work tree, git says.
fn may_have_work_tree(cwd: &Path) -> bool {
    let cwd = fs::canonicalize(cwd);
    cwd.is_ok_and(|cwd| cwd.ancestors().any(|dir| dir.join(".git").exists()))
}

/// The root of the work tree, and what follows it.
fn rooted(output: &[u8]) -> Option<(PathBuf, &[u8])> {
    let end = output.iter().position(|byte| *byte == 0)?;
    let (root, rest) = output.split_at_checked(end)?;
    let root = PathBuf::from(OsStr::from_bytes(root));
    root.is_absolute()
        .then(|| (root, rest.get(1..).unwrap_or_default()))
}

fn failed(error: io::Error) -> ScanProblem {
    tracing::debug!(%error, "scan failed");
    ScanProblem::Failed
}

/// Runs git as a command of the agent.
async fn run(context: &ToolContext, dir: &Path, untracked: Untracked) -> Result<Exit, ScanProblem> {
    let untracked = match untracked {
        Untracked::All => "all",
        Untracked::No => "no",
    };
    let args = ["-c", GIT, "sh", untracked];
    let order = Order {
        program: PathBuf::from("/bin/sh"),
        args: args.map(str::to_owned).into(),
        env: context.env.clone(),
        cwd: context.cwd.clone(),
        time_limit_ms: Some(TIME.as_millis() as u64),
        grace_ms: 0,
        output_limit_bytes: OUTPUT_BYTES,
        foreground: true,
        errors_apart: true,
        lab: context.lab.clone(),
        limits: context.task_limits,
        confined: context.ordinary(),
        ..Order::default()
    };
    let task = task::start(&context.shim, dir, &order).await;
    let task = task.map_err(|error| {
        tracing::debug!(%error, "scan not started");
        ScanProblem::Failed
    })?;
    let ended = tokio::time::timeout(TIME + PATIENCE, task.ended()).await;
    let Ok(ended) = ended else {
        // One that is gone by now has ended.
        drop(task.kill());
        return Err(ScanProblem::Timeout);
    };
    match ended {
        Ok(Found::Ended(exit)) if exit.timed_out => Err(ScanProblem::Timeout),
        Ok(Found::Ended(exit)) if exit.code == Some(0) => Ok(exit),
        Ok(Found::Ended(exit)) if exit.code == Some(NOT_FOUND) => Err(ScanProblem::NoGit),
        _ => Err(ScanProblem::Failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What says that it comes from git may be anything.
    #[test]
    fn the_root_of_a_work_tree_is_before_its_status() {
        let found = rooted(b"/a b\0? c\0? d\0").unwrap();
        assert_eq!(found, (PathBuf::from("/a b"), b"? c\0? d\0".as_slice()));
        assert_eq!(rooted(b"/a\0").unwrap().1, b"");
        for output in [b"".as_slice(), b"/a", b"a\0", b"\0? a\0"] {
            assert_eq!(rooted(output), None);
        }
    }
}
