//! The text files of a child: a process in the child's sandbox reads and writes them. It is started with the first request,
//! and serves one after the other.

use super::locked;
use crate::outer::start::{self, ChildOptions, How};
use crate::program_inside::{Program, ProgramInside};
use agentd_core::outer::acp::files::{ARGUMENT, CONFINED, FileReport, FileWork};
use agentd_core::outer::acp::{Refusal, done, text_answer};
use agentd_process::task::{Found, Order, Task};
use agentd_sandbox::{GitConfig, Network};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::MutexGuard;

/// How long one file may take, the start of the process included.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the file that is served may still take when the child has ended.
const FINISH_PATIENCE: Duration = Duration::from_secs(2);
/// The longest report: a text that is escaped as JSON.
const LONGEST_REPORT: u64 = 32 * 1024 * 1024;
/// The name of a copy of this program. It stays with the conversation, and the next child replaces it.
const COPY: &str = "agentd";

pub struct Files {
    options: ChildOptions,
    worker: tokio::sync::Mutex<Option<Worker>>,
    /// The process, for the end of the child.
    task: Mutex<Option<Task>>,
    /// The file that the process runs.
    program: Arc<ProgramInside>,
    /// The child has ended.
    is_closed: AtomicBool,
}

struct Worker {
    stdin: Sender,
    stdout: BufReader<Receiver>,
}

/// The right to ask the process. Others wait until it is dropped, so no more than one answer is in memory.
pub struct FilesGuard<'a> {
    files: &'a Files,
    worker: MutexGuard<'a, Option<Worker>>,
}

impl Files {
    pub fn new(options: &ChildOptions) -> Self {
        Self {
            options: options.clone(),
            worker: tokio::sync::Mutex::default(),
            task: Mutex::default(),
            program: Arc::new(ProgramInside::new(options.dir.join(COPY))),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Waits for the requests before this one.
    pub async fn lock(&self) -> FilesGuard<'_> {
        let worker = self.worker.lock().await;
        FilesGuard {
            files: self,
            worker,
        }
    }

    /// The child has ended: ends the process, and serves no file any more.
    pub async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        // A file that is being written is finished: a process that is killed leaves a temporary file.
        drop(tokio::time::timeout(FINISH_PATIENCE, self.worker.lock()).await);
        let task = locked(&self.task).take();
        if let Some(task) = task {
            start::end(&task, How::Kill).await;
        }
        // One that was being started is ended by its request.
        let _late = tokio::time::timeout(PATIENCE, self.worker.lock()).await;
    }

    async fn start(&self) -> Result<Worker, String> {
        let attached = self.options.attach(self.order().await?).await?;
        *locked(&self.task) = Some(attached.task);
        Ok(Worker {
            stdin: attached.stdin,
            stdout: BufReader::new(attached.stdout),
        })
    }

    fn check_open(&self) -> Result<(), String> {
        match self.is_closed.load(Ordering::Acquire) {
            true => Err("the agent's program has ended".to_owned()),
            false => Ok(()),
        }
    }

    /// This program, in the child's sandbox, with nothing of the child's environment and without a network.
    async fn order(&self) -> Result<Order, String> {
        let program = self.program().await.map_err(|error| error.to_string())?;
        let path = program.path().to_owned();
        let mut order = self.options.order(path, vec![ARGUMENT.to_owned()]);
        order.env = BTreeMap::new();
        if let Some(confined) = &mut order.confined {
            program.show_in(&mut confined.policy);
            confined.policy.network = Network::Off;
            confined.policy.is_own_program = true;
            // It writes in no git directory, and the user works there while it waits.
            confined.policy.git_config = GitConfig::Sealed;
            confined.hosts.clear();
            order.args.push(CONFINED.to_owned());
        }
        Ok(order)
    }

    async fn program(&self) -> io::Result<Program> {
        let program = Arc::clone(&self.program);
        let policy = self
            .options
            .confined
            .clone()
            .map(|confined| confined.policy);
        let choose = move || program.choose(policy.as_ref());
        let chosen = tokio::task::spawn_blocking(choose).await;
        chosen.map_err(io::Error::other)?
    }
}

impl FilesGuard<'_> {
    pub async fn serve(&mut self, work: &FileWork) -> Result<Value, Refusal> {
        let served = tokio::time::timeout(PATIENCE, self.ask(work)).await;
        let report = match served {
            Ok(Ok(report)) => report,
            Ok(Err(why)) => return Err(self.broken(work, why).await),
            Err(_) => return Err(self.broken(work, "it took too long".to_owned()).await),
        };
        match report {
            FileReport::Text(text) => Ok(text_answer(text)),
            FileReport::Written => Ok(done()),
            FileReport::Missing(why) => Err(Refusal::missing(why)),
            FileReport::Failed(why) => Err(Refusal::failed(why)),
        }
    }

    async fn ask(&mut self, work: &FileWork) -> Result<FileReport, String> {
        self.files.check_open()?;
        if self.worker.is_none() {
            let started = self.files.start().await?;
            *self.worker = Some(started);
            // It may have ended meanwhile, and not have seen the process.
            self.files.check_open()?;
        }
        let Some(worker) = self.worker.as_mut() else {
            return Err("the process was not started".to_owned());
        };
        let asked = worker.ask(work).await;
        asked.map_err(|error| error.to_string())
    }

    /// The process is ended: it would answer this request in place of the next one, or never.
    async fn broken(&mut self, work: &FileWork, why: String) -> Refusal {
        let task = locked(&self.files.task).take();
        drop(self.worker.take());
        let ended = match task {
            Some(task) => start::end(&task, How::Kill).await,
            // The end of the child has ended it.
            None => None,
        };
        let not_started = match ended {
            Some(Found::Ended(exit)) => exit.error,
            _ => None,
        };
        let why = not_started.unwrap_or(why);
        tracing::warn!(why, "the process for the program's files is ended");
        Refusal::failed(match work {
            FileWork::Read { path, .. } => format!("{path} cannot be read in the sandbox: {why}"),
            FileWork::Write { path, .. } => format!(
                "{path} cannot be written in the sandbox: {why}; whether it was written is unknown"
            ),
        })
    }
}

impl Worker {
    async fn ask(&mut self, work: &FileWork) -> io::Result<FileReport> {
        let mut line = serde_json::to_vec(work)?;
        line.push(b'\n');
        self.stdin.write_all(&line).await?;
        let mut report = Vec::new();
        let mut limited = (&mut self.stdout).take(LONGEST_REPORT);
        limited.read_until(b'\n', &mut report).await?;
        Ok(serde_json::from_slice(&report)?)
    }
}
