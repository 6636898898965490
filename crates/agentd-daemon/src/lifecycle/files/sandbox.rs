//! The sandbox in which files are read and written for an agent: that of its tools.

use crate::daemon::{AgentHandle, Daemon};
use crate::error::{Error, Kind, Result};
use crate::hooks::sandbox;
use crate::spawn::blocking;
use agentd_client::api::Env;
use agentd_core::files::{Room, Selection};
use agentd_core::id::AgentId;
use agentd_core::secrets::Secrets;
use agentd_core::spec::AgentSpec;
use agentd_failpoint as failpoint;
use agentd_process::task::{self, Confined, Exit, Found, Limits, Order, ShimProgram, Task};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// After its time limit, a process has this long to end before it is killed.
const GRACE: Duration = Duration::from_secs(2);
/// How long the sandbox and the end of the task may take in addition.
const PATIENCE: Duration = Duration::from_secs(5);
/// How much output is kept: the contents of all files that a restore may keep, in Base64.
const OUTPUT_BYTES: u64 = 4 * 1024 * 1024 * 1024;

/// Copied under the agent's lock, so that the lock is not held while files are read.
pub struct ToolSandbox {
    daemon: Arc<Daemon>,
    agent: AgentId,
    spec: Box<AgentSpec>,
    env: Arc<Env>,
    /// None of them may be in an event, or be shown.
    pub secrets: Secrets,
    /// The agent's working directory.
    pub cwd: PathBuf,
}

/// A program that is to run in the sandbox.
pub struct Program {
    pub path: PathBuf,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub stdin: String,
    /// The program finds this directory at `/tmp`, and can write to it. Without a sandbox it is not moved.
    pub tmp: PathBuf,
    /// Other paths that it can read.
    pub readable: Vec<PathBuf>,
    /// After this time, all its processes are ended.
    pub time: Duration,
    /// It is this program, and not one that the agent's tools could run.
    pub is_own: bool,
}

impl ToolSandbox {
    pub async fn of(handle: &AgentHandle, brought: &Env) -> Self {
        let mut guard = handle.lock().await;
        if !brought.is_empty() {
            guard.merge_env(brought);
        }
        let spec = guard.state.spec.clone();
        let cwd = PathBuf::from(spec.cwd.clone().unwrap_or_default());
        Self {
            daemon: Arc::clone(&handle.daemon),
            agent: handle.id,
            spec,
            env: Arc::clone(&guard.env),
            secrets: guard.secrets(),
            cwd,
        }
    }

    /// Whether the daemon ends: then nothing waits for results any more.
    pub fn is_ending(&self) -> bool {
        self.daemon.is_ending()
    }

    /// The limit of the contents that are kept for the agent, in bytes.
    pub fn kept_limit(&self) -> u64 {
        self.spec.limits.file_history_bytes()
    }

    /// How much one restore may keep for its undo.
    pub fn room(&self) -> Room {
        Room::of(&self.spec.limits)
    }

    /// The paths that the user selects, relative to the working directory.
    pub async fn selection(&self, paths: &[String]) -> Selection {
        let (cwd, paths) = (self.cwd.clone(), paths.to_vec());
        blocking(move || {
            // The journal has paths without links.
            let real = fs::canonicalize(&cwd).unwrap_or_else(|_| cwd.clone());
            let inside = |path: String| match Path::new(&path).strip_prefix(&cwd) {
                Ok(inside) => inside.display().to_string(),
                Err(_) => through_link(&path, &real).unwrap_or(path),
            };
            let paths: Vec<String> = paths.into_iter().map(inside).collect();
            Selection::new(&real.to_string_lossy(), &paths)
        })
        .await
    }

    /// None if the agent's tools have no sandbox either.
    pub fn confined(&self) -> Result<Option<Confined>> {
        let confined =
            sandbox::of_agent(&self.daemon, self.agent, &self.spec, &self.env, &self.cwd);
        confined.map_err(|why| {
            Error::new(
                Kind::Refused,
                "the sandbox of the agent's tools cannot be set up",
            )
            .because(why)
        })
    }

    /// Runs a program to its end as a task in this directory. Its output is in the directory's file `output`.
    pub async fn run(&self, dir: &Path, program: Program) -> Result<Exit> {
        let time = program.time;
        let order = self.order(program)?;
        let found = match task::start(&ShimProgram::default(), dir, &order).await {
            Ok(task) => ended(&task, time).await,
            Err(error) => Err(error),
        };
        let failed = |why: String| {
            let what = "the process that reads and writes files did not run";
            Error::new(Kind::Unavailable, what).because(why)
        };
        match found {
            Ok(Found::Ended(exit)) => match &exit.error {
                Some(error) => Err(failed(error.clone())),
                None => Ok(exit),
            },
            Ok(_) => Err(failed("it was killed".to_owned())),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    fn order(&self, program: Program) -> Result<Order> {
        if !self.cwd.is_dir() {
            let what = "the agent's working directory does not exist";
            let why = format!("{} is not a directory", self.cwd.display());
            return Err(Error::new(Kind::Refused, what).because(why));
        }
        let mut env = program.env;
        let path = self.env.get("PATH").cloned();
        env.entry("PATH".to_owned())
            .or_insert_with(|| path.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned()));
        if let Some(home) = self.env.get("HOME") {
            env.insert("HOME".to_owned(), home.clone());
        }
        let confined = self.confined()?.map(|mut confined| {
            confined.policy.tmp = program.tmp.clone();
            confined.policy.kept.extend(program.readable);
            confined.policy.is_own_program = program.is_own;
            confined
        });
        let tmp = match confined.is_some() {
            true => PathBuf::from("/tmp"),
            false => program.tmp,
        };
        env.insert("TMPDIR".to_owned(), tmp.display().to_string());
        Ok(Order {
            program: program.path,
            args: program.args,
            env,
            cwd: self.cwd.clone(),
            time_limit_ms: Some(program.time.as_millis() as u64),
            grace_ms: GRACE.as_millis() as u64,
            output_limit_bytes: OUTPUT_BYTES,
            foreground: true,
            errors_apart: true,
            stdin: Some(program.stdin),
            owner: None,
            // Contents of files are restored as they were.
            redact: Vec::new(),
            lab: failpoint::dir().map(Path::to_owned),
            limits: Limits::default(),
            confined: confined.map(Box::new),
        })
    }
}

/// The rest of an absolute path after the working directory, if it leads there through a symlink. Links inside the
/// working directory are not followed: they are the project's.
fn through_link(path: &str, real: &Path) -> Option<String> {
    let mut above: Vec<&Path> = Path::new(path).ancestors().collect();
    above.reverse();
    let is_cwd = |dir: &&Path| fs::canonicalize(dir).is_ok_and(|dir| dir == real);
    let dir = above
        .into_iter()
        .filter(|dir| dir.is_absolute())
        .find(is_cwd)?;
    let inside = Path::new(path).strip_prefix(dir).ok()?;
    Some(inside.display().to_string())
}

/// Waits for the end of a task. Its shim ends it after its time; if even that does not end it, it is killed.
async fn ended(task: &Task, time: Duration) -> agentd_process::Result<Found> {
    let longest = time + GRACE + PATIENCE;
    let ended = tokio::time::timeout(longest, task.ended()).await;
    ended.unwrap_or_else(|_| {
        // One that is gone by now has ended.
        drop(task.kill());
        Ok(Found::Unknown)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_path_through_a_link_to_the_working_directory_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let real = root.join("real");
        fs::create_dir(&real).unwrap();
        symlink(&real, root.join("link")).unwrap();
        // A link of the project that leads back is not followed.
        symlink(&real, real.join("back")).unwrap();
        let found = |path: &Path| through_link(&path.display().to_string(), &real);
        let inside = found(&root.join("link/src/a.rs"));
        assert_eq!(inside.as_deref(), Some("src/a.rs"));
        let inside = found(&root.join("link/back/a.rs"));
        assert_eq!(inside.as_deref(), Some("back/a.rs"));
        assert_eq!(found(&root.join("link")).as_deref(), Some(""));
        assert_eq!(found(&root.join("other/a.rs")), None);
        assert_eq!(through_link("src/a.rs", &real), None);
    }
}
