//! The processes of differences and restores. They are ended when nothing waits for their results any more: their daemon
//! ends, or has ended.

use crate::daemon::Daemon;
use crate::spawn::blocking;
use agentd_process::task::{self, Found};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the end of killed processes may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The tasks of a request, in its directory.
const OF_REQUEST: [&str; 3] = ["read", "look", "git"];

/// Which tasks are ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that only read. A restore that is recorded has to be completed, so its writer is left alone.
    Readers,
    All,
}

/// Ends all tasks that read files or ask git.
pub async fn end_readers(daemon: &Daemon) {
    let layout = daemon.layout.clone();
    for dir in blocking(move || layout.all_restores()).await {
        end(&dir, Which::Readers).await;
    }
}

/// Ends tasks in the directory of a request or a restore, and waits until they have ended.
pub async fn end(dir: &Path, which: Which) {
    let dir = dir.to_owned();
    for task in blocking(move || tasks(&dir, which)).await {
        end_one(task).await;
    }
}

/// Ends a task, and prevents one that was not started yet from starting.
pub async fn end_one(dir: PathBuf) {
    let at = dir.clone();
    let found = blocking(move || task::find(&at, None)).await;
    let Ok(Found::Running(running)) = found else {
        return;
    };
    // One that is gone by now has ended.
    drop(running.kill());
    let ended = tokio::time::timeout(PATIENCE, running.ended()).await;
    if ended.is_err() {
        let dir = dir.display();
        tracing::warn!(%dir, "processes of a restore not ended in time");
    }
}

fn tasks(dir: &Path, which: Which) -> Vec<PathBuf> {
    let attempts = (0..).map(|n| dir.join(format!("write-{n}")));
    let attempts = attempts.take_while(|at| at.is_dir());
    let names: &[&str] = match which {
        Which::Readers => &["git"],
        Which::All => &["git", "task"],
    };
    let of_attempts = attempts.flat_map(|at| names.iter().map(move |name| at.join(name)));
    let of_request = OF_REQUEST.into_iter().map(|name| dir.join(name));
    let all = of_request.chain(of_attempts);
    all.filter(|task| task.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_of_a_restore_is_not_a_reader() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["read", "write-0/git", "write-1/task", "write-3/git"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        let all = |names: &[&str]| names.iter().map(|name| dir.path().join(name)).collect();
        let readers: Vec<PathBuf> = all(&["read", "write-0/git"]);
        assert_eq!(tasks(dir.path(), Which::Readers), readers);
        let both: Vec<PathBuf> = all(&["read", "write-0/git", "write-1/task"]);
        assert_eq!(tasks(dir.path(), Which::All), both);
    }

    /// The daemon was killed between the directory of a task and its start.
    #[tokio::test]
    async fn a_task_that_was_ended_before_its_start_does_not_start() {
        let dir = tempfile::tempdir().unwrap();
        let task = dir.path().join("git");
        std::fs::create_dir(&task).unwrap();
        end(dir.path(), Which::Readers).await;
        assert!(matches!(task::find(&task, None), Ok(Found::NeverStarted)));
    }
}
