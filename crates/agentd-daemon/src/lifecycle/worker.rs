//! Runs this program as a worker: a process that does one thing for the daemon, such as asking an MCP server. It gets its
//! work on stdin and reports on stdout. It is attached: it ends with the daemon, and nothing of it is in a file.

use crate::spawn::{blocking, spawn};
use agentd_process::task::{self, Found, Order, ShimProgram, Task};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const GRACE_MS: u64 = 5_000;
/// How much a report may contain.
const REPORT_BYTES: u64 = 16 * 1024 * 1024;

/// The order for a worker, which is selected by its first argument.
pub fn order(argument: &str, time_limit_ms: u64) -> Order {
    Order {
        // The shim's own image, which is that of the daemon: an upgrade may have replaced the file.
        program: PathBuf::from("/proc/self/exe"),
        args: vec![argument.to_owned()],
        env: BTreeMap::new(),
        cwd: PathBuf::from("/"),
        time_limit_ms: Some(time_limit_ms),
        grace_ms: GRACE_MS,
        output_limit_bytes: REPORT_BYTES,
        foreground: true,
        ..Order::default()
    }
}

/// Creates the directory of a worker.
pub fn make_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(dir)
}

/// The directory of a worker, which may not exist yet. If the caller does not wait any more, it is removed when the worker
/// has ended.
pub struct WorkDir(Option<PathBuf>);

impl WorkDir {
    pub const fn new(dir: PathBuf) -> Self {
        Self(Some(dir))
    }

    /// The worker has ended.
    pub async fn remove(mut self) {
        if let Some(dir) = self.0.take() {
            let _left = blocking(move || fs::remove_dir_all(dir)).await;
        }
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // The end of the daemon ends workers too; the next one removes what they leave.
        if let Some(dir) = self.0.take()
            && tokio::runtime::Handle::try_current().is_ok()
        {
            remove_when_ended(dir);
        }
    }
}

/// Removes the directory of a worker when the worker has ended.
pub fn remove_when_ended(dir: PathBuf) {
    spawn("directory of a worker that was left", async move {
        let at = dir.clone();
        if let Ok(Found::Running(task)) = blocking(move || task::find(&at, None)).await {
            let _ended = task.ended().await;
        }
        let _left = blocking(move || fs::remove_dir_all(dir)).await;
    });
}

/// Runs a worker and returns its report. An error is for users. If the caller does not wait any more, the worker is killed.
pub async fn run<R: DeserializeOwned>(
    dir: &Path,
    order: Order,
    work: &impl Serialize,
) -> Result<R, String> {
    let work = serde_json::to_vec(work).map_err(|error| error.to_string())?;
    let attached = task::start_attached(&ShimProgram::default(), dir, order).await;
    let attached = attached.map_err(|error| error.to_string())?;
    let (stdin, stdout) = (attached.stdin, attached.stdout);
    let mut worker = Worker {
        task: attached.task,
        is_over: false,
    };
    let write = async move {
        let mut stdin = stdin;
        // If the process does not read, its end says why.
        let _broken = stdin.write_all(&work).await;
    };
    let read = async move {
        let mut report = Vec::new();
        let read = stdout.take(REPORT_BYTES).read_to_end(&mut report).await;
        read.map(|_| report)
    };
    let ((), bytes) = tokio::join!(write, read);
    let found = worker.task.ended().await;
    worker.is_over = true;
    let found = found.map_err(|error| error.to_string())?;
    let report = bytes.ok().and_then(|it| serde_json::from_slice(&it).ok());
    report.ok_or_else(|| match found {
        Found::Ended(exit) if exit.timed_out => "it took too long".to_owned(),
        Found::Ended(exit) => format!("the process that asks it ended early: {exit:?}"),
        _ => "the process that asks it was killed".to_owned(),
    })
}

/// Killed unless it is over.
struct Worker {
    task: Task,
    is_over: bool,
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.is_over {
            drop(self.task.kill());
        }
    }
}
