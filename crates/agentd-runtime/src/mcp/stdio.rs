//! A server that is a program: an attached task in the sandbox of the agent's tools.

use super::{Error, Options};
use agentd_files::own;
use agentd_process::task::{Attached, Exit, Found, Order, Task, find, start_attached};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::unix::pipe::{Receiver, Sender};
use uuid::Uuid;

/// Where the files of running servers are, below the agent's directory.
const DIR: &str = "mcp";
/// How long a server may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);
/// How long we wait for the end of its whole tree.
const END: Duration = Duration::from_secs(5);
/// How much of its stderr is kept, and how much of that is shown.
const ERRORS_BYTES: u64 = 64 * 1024;
const SHOWN_BYTES: usize = 400;

/// A program as the settings name it.
pub(super) struct Program<'a> {
    pub command: &'a str,
    pub args: &'a [String],
    pub env: &'a BTreeMap<String, String>,
    pub cwd: Option<&'a str>,
}

/// A running server. Dropping it kills its whole tree; [`Process::end`] also waits for that.
pub(super) struct Process {
    task: Task,
    dir: PathBuf,
    is_over: bool,
}

pub(super) async fn start(
    program: &Program<'_>,
    options: &Options,
) -> Result<(Process, Receiver, Sender), Error> {
    let id = Uuid::now_v7().to_string();
    let dir = options.state.join(DIR).join(&id);
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir);
    made.map_err(|error| Error::CannotStart(error.to_string()))?;
    let order = order(program, options);
    match start_attached(&options.shim, &dir, order).await {
        Ok(Attached {
            task,
            stdin,
            stdout,
        }) => {
            let is_over = false;
            let process = Process { task, dir, is_over };
            Ok((process, stdout, stdin))
        }
        Err(error) => {
            remove(&dir);
            Err(Error::CannotStart(error.to_string()))
        }
    }
}

/// Removes what servers of earlier processes left. If the shim of one was killed, this also ends what is left of its tree. A
/// server that is just being ended stays.
pub(super) fn remove_ended(state: &Path) {
    let Ok(entries) = fs::read_dir(state.join(DIR)) else {
        return;
    };
    for dir in entries.flatten().map(|entry| entry.path()) {
        match find(&dir, None) {
            Ok(Found::Running(_)) => {}
            Ok(_) => remove(&dir),
            Err(error) => {
                tracing::warn!(dir = %dir.display(), %error, "the state of an MCP server cannot be read");
            }
        }
    }
}

fn order(program: &Program<'_>, options: &Options) -> Order {
    let mut env = options.env.clone();
    env.extend(program.env.clone());
    // The shell looks for the program in the PATH of the sandbox, not in ours.
    let mut args = vec!["-c".to_owned(), "exec \"$0\" \"$@\"".to_owned()];
    args.push(program.command.to_owned());
    args.extend(program.args.iter().cloned());
    let confined = options.confined.clone().map(|mut confined| {
        confined.policy.foreground = true;
        Box::new(confined)
    });
    Order {
        program: PathBuf::from("/bin/sh"),
        args,
        env,
        cwd: match program.cwd {
            Some(dir) => options.cwd.join(dir),
            None => options.cwd.clone(),
        },
        grace_ms: GRACE.as_millis() as u64,
        output_limit_bytes: ERRORS_BYTES,
        foreground: true,
        redact: options.secrets.values(),
        lab: options.lab.clone(),
        limits: options.limits,
        confined,
        ..Order::default()
    }
}

impl Process {
    /// Ends the whole tree and waits until no process is left of it, up to a limit. Returns how the program ended, as the end
    /// of a sentence. A program that closed its output is ending by itself: only without our signal is its exit code its own.
    pub async fn end(mut self, closed_by_it: bool) -> String {
        self.is_over = true;
        if closed_by_it {
            let _still_runs = tokio::time::timeout(GRACE, self.task.ended()).await;
        }
        drop(self.task.stop());
        let ended = match tokio::time::timeout(GRACE + END, self.task.ended()).await {
            Ok(ended) => ended.ok(),
            Err(_) => {
                drop(self.task.kill());
                None
            }
        };
        let said = match ended {
            Some(Found::Ended(exit)) => told(&exit),
            _ => String::new(),
        };
        let said = format!("{said}{}", self.errors());
        remove(&self.dir);
        said
    }

    /// The end of what it wrote to stderr.
    fn errors(&self) -> String {
        let bytes = own::read(self.task.errors_path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let text = agentd_core::plain::only_plain(text.trim());
        let from = text.ceil_char_boundary(text.len().saturating_sub(SHOWN_BYTES));
        match text[from..].trim() {
            "" => String::new(),
            tail => format!(": {tail}"),
        }
    }
}

fn told(exit: &Exit) -> String {
    match exit {
        Exit {
            error: Some(error), ..
        } => format!(" ({error})"),
        Exit {
            code: Some(127), ..
        } => " (command not found in the sandbox)".to_owned(),
        Exit {
            code: Some(code),
            stopped: false,
            ..
        } => format!(" (exit code {code})"),
        Exit {
            signal: Some(signal),
            stopped: false,
            ..
        } => format!(" (signal {signal})"),
        _ => String::new(),
    }
}

fn remove(dir: &Path) {
    if let Err(error) = fs::remove_dir_all(dir) {
        tracing::warn!(dir = %dir.display(), %error, "the files of an MCP server could not be removed");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_over {
            drop(self.task.kill());
        }
    }
}
