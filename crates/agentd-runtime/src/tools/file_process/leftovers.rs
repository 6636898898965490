//! The processes that an earlier runtime of the agent left. Each ends with its runtime, but not in the same moment.

use super::{DIR, FileProcesses};
use agentd_process::task::{self, Found};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long a killed process may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

impl FileProcesses {
    /// Waits until the processes of earlier runtimes have ended: what is found in a file before that may be changed by one of
    /// them afterwards. An error, for the model, names one that does not end.
    pub fn end_leftovers(&self) -> Result<(), String> {
        let mut has_ended = self
            .has_ended_leftovers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *has_ended {
            return Ok(());
        }
        for runtime in dirs(&self.options.state.join(DIR)) {
            if runtime == self.dir {
                continue;
            }
            for run in dirs(&runtime) {
                end(&run)?;
            }
            // An error leaves an empty directory, which the next process removes.
            let _left = fs::remove_dir_all(&runtime);
        }
        *has_ended = true;
        Ok(())
    }
}

fn end(run: &Path) -> Result<(), String> {
    let cannot = |why: &dyn std::fmt::Display| {
        format!(
            "a process that changes files for an earlier process of this agent does not end: {why}"
        )
    };
    match task::find(run, None) {
        Ok(Found::Running(task)) => {
            drop(task.kill());
            let ended = async { tokio::time::timeout(PATIENCE, task.ended()).await };
            match Handle::current().block_on(ended) {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(cannot(&error)),
                Err(late) => Err(cannot(&late)),
            }
        }
        Ok(_) => Ok(()),
        Err(error) => Err(cannot(&error)),
    }
}

fn dirs(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    dirs.map(|entry| entry.path()).collect()
}
