//! The directories of ended commands, and the files of kept outputs: the oldest are removed, so that their number is bounded.
//! What the model was told about stays longest. See docs/design/019-commands-outlive-their-runtime.md.

use agentd_core::id::TaskId;
use agentd_process::task::{self, Found};
use std::collections::BTreeSet;
use std::fs;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// How many outputs are kept that the model was shown only in part, and of which it knows where they are. A window has room
/// for fewer parts of such outputs.
const TOLD: usize = 200;
/// How many directories are kept of other commands: the journal has all of their output.
const OTHERS: usize = 50;
/// How many calls end before the directories are looked at again.
const EVERY: usize = 32;

/// What became of a kept output that is not there any more.
pub(super) const REMOVED: &str = "Kept output is removed when there is newer output: of an agent, the newest 200 outputs are \
                                  kept, and at most `kept_output_bytes` of them. Run the command again if you need it.";

pub(super) struct EndedTasks {
    dirs: Arc<Dirs>,
    phase: Arc<Mutex<Phase>>,
}

/// Where they are.
struct Dirs {
    tasks: PathBuf,
    outputs: PathBuf,
    /// Of a longer output, the model was shown a part.
    shown_bytes: u64,
}

/// The directories are listed before the journal is asked which tasks are open. The start of a task is in the journal before
/// its directory exists. So a task that was listed and is not open has its end in the journal.
enum Phase {
    /// This many calls have ended since.
    Waits(usize),
    Lists,
    Listed(Vec<TaskId>),
    Removes,
}

impl EndedTasks {
    pub fn new(state: &Path, shown_bytes: usize) -> Self {
        Self {
            dirs: Arc::new(Dirs {
                tasks: state.join("tasks"),
                outputs: state.join("outputs"),
                shown_bytes: shown_bytes as u64,
            }),
            // What an earlier process left is removed first.
            phase: Arc::new(Mutex::new(Phase::Waits(EVERY))),
        }
    }

    /// A call or a task has ended, and the journal has it.
    pub fn count(&self) {
        let mut phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        if let Phase::Waits(ended) = &mut *phase {
            *ended += 1;
        }
    }

    /// Does the next step, if one is due, without waiting for it. `open` returns the tasks whose end is not in the journal.
    pub fn tidy(&self, open: impl FnOnce() -> BTreeSet<TaskId>) {
        let mut phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        let (dirs, then) = (Arc::clone(&self.dirs), Arc::clone(&self.phase));
        let set = move |phase| *then.lock().unwrap_or_else(PoisonError::into_inner) = phase;
        match &mut *phase {
            Phase::Waits(ended) if *ended >= EVERY => {
                *phase = Phase::Lists;
                tokio::task::spawn_blocking(move || set(Phase::Listed(dirs.list())));
            }
            Phase::Listed(listed) => {
                let mut listed = mem::take(listed);
                *phase = Phase::Removes;
                let open = open();
                listed.retain(|task| !open.contains(task));
                tokio::task::spawn_blocking(move || {
                    dirs.remove(listed);
                    set(Phase::Waits(0));
                });
            }
            Phase::Waits(_) | Phase::Lists | Phase::Removes => {}
        }
    }
}

impl Dirs {
    fn list(&self) -> Vec<TaskId> {
        let entries = fs::read_dir(&self.tasks).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| name.parse().ok()).collect()
    }

    /// Removes what is too much of these tasks, whose end is in the journal, and of the kept outputs. An error leaves a
    /// directory for the next time.
    fn remove(&self, mut ended: Vec<TaskId>) {
        if let Err(error) = task::remove_rest(&self.tasks) {
            tracing::debug!(%error, "rest of a task not removed");
        }
        // An id begins with the time of the call.
        ended.sort_unstable_by(|one, other| other.cmp(one));
        let (mut told, mut others) = (0, 0);
        for id in ended {
            let dir = self.tasks.join(id.to_string());
            let (count, most) = match self.was_told(&dir) {
                true => (&mut told, TOLD),
                false => (&mut others, OTHERS),
            };
            *count += 1;
            if *count <= most {
                continue;
            }
            match task::remove(&dir) {
                Ok(_) => {}
                Err(error) => tracing::debug!(task = %id, %error, "ended task not removed"),
            }
        }
        remove_oldest(&self.outputs);
    }

    /// Whether the model may read what the directory has: it was shown a part, or has the id of a background task.
    fn was_told(&self, dir: &Path) -> bool {
        match task::find_ended(dir) {
            Ok(Found::Ended(exit)) if exit.error.is_some() => false,
            Ok(Found::Ended(exit)) => !exit.foreground || exit.output_bytes > self.shown_bytes,
            _ => fs::metadata(dir.join("output")).is_ok_and(|output| output.len() > 0),
        }
    }
}

fn remove_oldest(outputs: &Path) {
    let entries = fs::read_dir(outputs).into_iter().flatten().flatten();
    let changed = |path: &Path| fs::symlink_metadata(path)?.modified();
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .map(|entry| entry.path())
        .map(|path| (changed(&path).unwrap_or(SystemTime::UNIX_EPOCH), path))
        .collect();
    files.sort_unstable_by(|one, other| other.cmp(one));
    for (_, path) in files.into_iter().skip(TOLD) {
        if let Err(error) = fs::remove_file(&path) {
            tracing::debug!(path = %path.display(), %error, "kept output not removed");
        }
    }
}

/// Whether a path is one of a kept output, which may have been removed.
pub(super) fn is_kept_output(state: &Path, path: &Path) -> bool {
    ["tasks", "outputs"]
        .iter()
        .any(|name| path.starts_with(state.join(name)))
}

/// A note for a result whose text says that a kept output does not exist.
pub(super) fn note(state: &Path, text: &str) -> Option<String> {
    let lines = text.lines().filter(|line| line.contains("No such file"));
    let mut named = lines.flat_map(|line| {
        let dirs = ["tasks", "outputs"].map(|name| format!("{}/", state.join(name).display()));
        let paths = dirs.map(|dir| line.find(&dir).and_then(|at| line.get(at..)));
        paths.into_iter().flatten()
    });
    let ends = |it: char| it.is_whitespace() || "'\"`:’".contains(it);
    let is_gone = |path: &str| {
        let path = path.split(ends).next().unwrap_or_default();
        !Path::new(path).exists()
    };
    named.any(is_gone).then(|| format!("[output] {REMOVED}"))
}

#[cfg(test)]
mod tests;
