//! The processes in which file tools work: this program, in a view of its own, without capabilities, network, cache layers
//! and the processes of the host. See docs/design/035-file-tools-in-the-view.md.
//!
//! A process serves one request at a time and is kept for the next one, as long as a new view would be the same. This
//! module knows requests and reports only as bytes.

mod frame;
mod leftovers;
mod policy;
mod process;

pub(super) use frame::{read_frame, write_frame};

use super::blocking::Stop;
use crate::program_inside::ProgramInside;
use agentd_process::Identity;
use agentd_process::task::{Limits, ShimProgram};
use agentd_sandbox::{Network, Policy, Support, ViewId, support, view_id};
use process::Process;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The first argument of such a process.
pub(super) const ARGUMENT: &str = "__file-tools";
/// Where their files are, in the agent's directory.
const DIR: &str = "file_tools";
/// The name of a copy of this program, in the same directory.
const COPY: &str = "agentd";
/// How many processes wait for work: calls that only read run in parallel.
const MOST_IDLE: usize = 2;

pub(super) struct FileOptions {
    pub shim: ShimProgram,
    /// The agent's directory.
    pub state: PathBuf,
    pub limits: Limits,
    pub lab: Option<PathBuf>,
    pub secrets: Vec<String>,
}

/// Whether a process is kept for the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasting {
    Kept,
    /// The user approved one call: its view is not used again.
    OneCall,
}

/// Why there is no report.
#[derive(Debug)]
pub(super) enum NoReport {
    /// The process got no request.
    NotAsked(String),
    /// The process ended before it reported, and has ended by now. What it was asked for may be done.
    Lost(String),
}

pub(super) struct FileProcesses {
    options: FileOptions,
    program: ProgramInside,
    /// The directory of the processes that this process starts.
    dir: PathBuf,
    idle: Mutex<Vec<Process>>,
    /// Whether the processes that an earlier runtime left have ended.
    has_ended_leftovers: Mutex<bool>,
    support: OnceLock<Support>,
}

impl FileProcesses {
    pub fn new(options: FileOptions) -> Self {
        let all = options.state.join(DIR);
        // Unique on this boot. Tasks of an earlier boot have no process.
        let own = Identity::current().map_or_else(
            |_| std::process::id().to_string(),
            |own| format!("{}-{}", own.pid, own.start_ticks),
        );
        Self {
            program: ProgramInside::new(all.join(COPY)),
            dir: all.join(own),
            options,
            idle: Mutex::default(),
            has_ended_leftovers: Mutex::default(),
            support: OnceLock::new(),
        }
    }

    /// Whether this kernel can make views.
    pub fn has_views(&self) -> bool {
        self.support().namespaces.is_ok()
    }

    fn support(&self) -> &Support {
        self.support.get_or_init(support)
    }

    /// What file tools see and write, of what commands do.
    pub fn policy(&self, of_commands: &Policy) -> Policy {
        let network = match self.support().network {
            Ok(()) => Network::Off,
            // They never use it.
            Err(_) => Network::On,
        };
        policy::of_files(of_commands, network)
    }

    /// Sends a request to a process with this policy and waits for its report. A new process gets `setup` first. Blocks; to be
    /// called on a thread of a tokio runtime.
    pub fn ask(
        &self,
        policy: &Policy,
        lasting: Lasting,
        setup: impl Fn() -> serde_json::Result<Vec<u8>>,
        request: &[u8],
        stop: &Stop,
    ) -> Result<Vec<u8>, NoReport> {
        let view = view_id(policy).map_err(|error| {
            NoReport::NotAsked(format!("the sandbox cannot be set up: {error}"))
        })?;
        if lasting == Lasting::Kept
            && let Some(mut process) = self.take(view)
        {
            match process.ask(request, stop) {
                // It has ended while it waited. Another one gets the request.
                Err(NoReport::NotAsked(_)) => process.retire(),
                answer => return self.answered(process, lasting, answer),
            }
        }
        let mut process = self.start(policy, view, &setup)?;
        let answer = process.ask(request, stop);
        self.answered(process, lasting, answer)
    }

    fn answered(
        &self,
        process: Process,
        lasting: Lasting,
        answer: Result<Vec<u8>, NoReport>,
    ) -> Result<Vec<u8>, NoReport> {
        let why = match answer {
            Ok(report) => {
                self.put_back(process, lasting);
                return Ok(report);
            }
            Err(NoReport::NotAsked(why)) => NoReport::NotAsked(process.end().unwrap_or(why)),
            Err(NoReport::Lost(why)) => match process.end() {
                // The program was never started.
                Some(not_started) => NoReport::NotAsked(not_started),
                None => NoReport::Lost(why),
            },
        };
        Err(why)
    }

    /// A process that waits, with this very view. Those with an earlier one are not needed any more.
    fn take(&self, view: ViewId) -> Option<Process> {
        let mut idle = self.idle();
        let outdated = idle.extract_if(.., |process| process.view != view);
        outdated.for_each(Process::retire);
        idle.pop()
    }

    fn put_back(&self, process: Process, lasting: Lasting) {
        let mut idle = self.idle();
        match lasting == Lasting::Kept && idle.len() < MOST_IDLE {
            true => idle.push(process),
            false => process.retire(),
        }
    }

    /// Ends the processes that wait for work.
    pub async fn close(&self) {
        let idle = std::mem::take(&mut *self.idle());
        for process in idle {
            process.ended().await;
        }
        // Not empty if a call still runs: the next process of the agent removes it.
        let _in_use = std::fs::remove_dir(&self.dir);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Process>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
