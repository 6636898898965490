//! Starting a child: in the agent's sandbox, under a shim that owns its whole tree and ends it with this process.

use super::talk::{Bounds, Talk};
use agentd_core::secrets::Secrets;
use agentd_process::task::{
    self, Attached, Confined, Found, Limits, Order, ShimProgram, Task, start_attached,
};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;
use uuid::Uuid;

/// How long a child may take to end after SIGTERM, before it is killed.
const GRACE_MS: u64 = 3_000;
/// How long a child may still run when its output has ended.
const END_PATIENCE: Duration = Duration::from_secs(1);
/// How long killed processes may take to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much of its stderr is kept on disk, and how much of that an error shows.
const ERRORS_BYTES: u64 = 1024 * 1024;
const SHOWN_BYTES: u64 = 2048;
/// What to do about a program that is not there.
const CHECK: &str = "check `command` in the agent's settings, and add the program's directory to `readable` if the sandbox hides it";
/// Looks for the program in `PATH`, as the sandbox sees it.
const LOOK: &str = "exec \"$0\" \"$@\"";

/// Everything that a child is started with.
#[derive(Clone)]
pub struct ChildOptions {
    /// A path, or a name to look for in `PATH`.
    pub program: String,
    pub args: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
    /// The directory of the child's conversation.
    pub dir: PathBuf,
    pub confined: Option<Confined>,
    pub limits: Limits,
    /// What it may say in one turn.
    pub bounds: Bounds,
    pub shim: ShimProgram,
    pub lab: Option<PathBuf>,
    pub secrets: Secrets,
}

impl ChildOptions {
    pub(super) async fn start(&self, more_args: &[String]) -> Result<Attached, String> {
        let all_args = self.args.iter().chain(more_args).cloned();
        let (program, args) = match self.program.contains('/') {
            true => (self.cwd.join(&self.program), all_args.collect()),
            false => {
                let look = ["-c".to_owned(), LOOK.to_owned(), self.program.clone()];
                (
                    PathBuf::from("/bin/sh"),
                    look.into_iter().chain(all_args).collect(),
                )
            }
        };
        let started = self.attach(self.order(program, args)).await;
        started.map_err(|error| {
            format!(
                "the agent's program `{}` cannot be started: {error}; {CHECK}",
                self.program
            )
        })
    }

    /// What runs in the child's sandbox, with its environment and its limits, and ends with this process.
    pub(super) fn order(&self, program: PathBuf, args: Vec<String>) -> Order {
        Order {
            program,
            args,
            env: self.env.clone(),
            cwd: self.cwd.clone(),
            grace_ms: GRACE_MS,
            output_limit_bytes: ERRORS_BYTES,
            foreground: true,
            errors_apart: true,
            redact: self.secrets.values(),
            lab: self.lab.clone(),
            limits: self.limits,
            confined: self.confined.clone().map(Box::new),
            ..Order::default()
        }
    }

    /// Starts a process of the conversation: the child itself, or one that runs for it. An error is for users.
    pub(super) async fn attach(&self, order: Order) -> Result<Attached, String> {
        let dir = self.runs().join(Uuid::now_v7().to_string());
        fs::create_dir_all(self.runs()).map_err(|error| error.to_string())?;
        let started = start_attached(&self.shim, &dir, order).await;
        started.map_err(|error| error.to_string())
    }

    /// The name of the program, for users.
    pub(super) fn name(&self) -> String {
        let name = Path::new(&self.program).file_name();
        name.map_or_else(
            || self.program.clone(),
            |name| name.to_string_lossy().into_owned(),
        )
    }

    fn runs(&self) -> PathBuf {
        self.dir.join(RUNS)
    }
}

/// The directory of a conversation's runs: one directory for each process of its child, and for each that runs for it.
const RUNS: &str = "run";

/// Ends a child with all its processes, and removes its files. `None` if how it ended is unknown.
pub(super) async fn end(task: &Task, how: How) -> Option<Found> {
    match how {
        How::Ask => drop(task.stop()),
        How::Kill => drop(task.kill()),
    }
    let limit = Duration::from_millis(GRACE_MS) + PATIENCE;
    let found = tokio::time::timeout(limit, task.ended()).await.ok()?.ok();
    // An error here leaves files, which the next process removes.
    let _left = fs::remove_dir_all(task.dir());
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Ask,
    Kill,
}

/// How a child ended, with its name and the end of what it wrote to stderr.
pub(super) async fn ended(task: &Task, name: &str) -> (Option<i32>, String) {
    let found = task.ended().await;
    let (code, how) = match found {
        Ok(Found::Ended(exit)) => {
            let how = match (&exit.error, exit.code, exit.signal) {
                (Some(error), _, _) => format!("could not be started: {error}; {CHECK}"),
                (None, Some(code @ (126 | 127)), _) => {
                    format!("ended with exit code {code}: it is missing or cannot be run; {CHECK}")
                }
                (None, Some(code), _) => format!("ended with exit code {code}"),
                (None, None, Some(signal)) => format!("was ended by signal {signal}"),
                (None, None, None) => "was ended before it started".to_owned(),
            };
            (exit.code, how)
        }
        _ => (None, "ended; how is unknown".to_owned()),
    };
    let errors = tail(&task.errors_path()).unwrap_or_default();
    let errors = match errors.trim() {
        "" => String::new(),
        errors => format!(". It wrote: {errors}"),
    };
    (code, format!("the agent's program `{name}` {how}{errors}"))
}

/// Waits until what a child says next can be kept, or until it has ended: then only a little is left.
pub(super) async fn until_room(talk: &Talk, task: &Task) {
    tokio::select! {
        biased;
        () = talk.until_room() => {}
        _ = task.ended() => {}
    }
}

/// How a child ended whose output has ended, or is not read any more. One that goes on without it is killed: it could not
/// answer.
pub(super) async fn ended_without_output(task: &Task, name: &str) -> (Option<i32>, String) {
    let ended_itself = tokio::time::timeout(END_PATIENCE, ended(task, name)).await;
    if let Ok(how) = ended_itself {
        return how;
    }
    drop(task.kill());
    ended(task, name).await
}

fn tail(path: &Path) -> io::Result<String> {
    let mut file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(SHOWN_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(SHOWN_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Ends the children that an earlier process of the agent has left, in all conversations. `outer` is the directory that
/// holds the directories of the conversations. An error, for users, names one that does not end: no other child may run beside it.
pub async fn end_leftovers(outer: &Path) -> Result<(), String> {
    for conversation in entries(outer) {
        for run in entries(&conversation.join(RUNS)) {
            match task::find(&run, None) {
                Ok(Found::Running(task)) => {
                    let _how = end(&task, How::Ask).await;
                    // Its directory is removed when it has ended, and looking for it would create it again.
                    if run.is_dir()
                        && let Ok(Found::Running(_)) = task::find(&run, None)
                    {
                        return Err(format!("a process of {} does not end", run.display()));
                    }
                }
                Ok(_) => {
                    let _left = fs::remove_dir_all(&run);
                }
                Err(error) => {
                    tracing::warn!(%error, run = %run.display(), "cannot look for a child")
                }
            }
        }
    }
    Ok(())
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
