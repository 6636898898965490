//! One process of the file tools: starting it, asking it, and ending it.

use super::frame::{head, length};
use super::{ARGUMENT, FileProcesses, NoReport};
use crate::tools::blocking::Stop;
use agentd_process::task::{Confined, Found, Order, Task, start_attached};
use agentd_sandbox::{Policy, ViewId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use uuid::Uuid;

/// The longest that one request may take, the start of the process included. Tools have shorter limits of their own.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a killed process may take to end.
const END_PATIENCE: Duration = Duration::from_secs(10);
/// How often a call that waits looks whether it was abandoned.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// How much of its stderr is kept on disk.
const ERRORS_BYTES: u64 = 64 * 1024;

/// A process that was started. Dropping it kills it.
pub struct Process {
    /// What it sees.
    pub view: ViewId,
    task: Task,
    to: OwnedFd,
    from: OwnedFd,
    is_over: bool,
}

impl FileProcesses {
    /// Starts a process and gives it its setup. It may turn out with the first request that its program was not started.
    pub(super) fn start(
        &self,
        policy: &Policy,
        view: ViewId,
        setup: impl Fn() -> serde_json::Result<Vec<u8>>,
    ) -> Result<Process, NoReport> {
        let not_asked = |error: &dyn std::fmt::Display| {
            NoReport::NotAsked(format!("the process for files cannot be started: {error}"))
        };
        let setup = setup().map_err(|error| not_asked(&error))?;
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir);
        made.map_err(|error| not_asked(&error))?;
        let dir = self.dir.join(Uuid::now_v7().to_string());
        let order = self.order(policy).map_err(|error| not_asked(&error))?;
        let attached = Handle::current().block_on(start_attached(&self.options.shim, &dir, order));
        let attached = attached.map_err(|error| not_asked(&error))?;
        let to = attached.stdin.into_nonblocking_fd();
        let from = attached.stdout.into_nonblocking_fd();
        let mut process = Process {
            view,
            task: attached.task,
            to: to.map_err(|error| not_asked(&error))?,
            from: from.map_err(|error| not_asked(&error))?,
            is_over: false,
        };
        let until = Instant::now() + PATIENCE;
        match process.send(&setup, &Stop::default(), until) {
            Ok(()) => Ok(process),
            Err(error) => Err(match process.end() {
                Some(not_started) => NoReport::NotAsked(not_started),
                None => not_asked(&error),
            }),
        }
    }

    /// This program, with an empty environment.
    fn order(&self, policy: &Policy) -> io::Result<Order> {
        let program = self.program.choose(Some(policy))?;
        let mut policy = policy.clone();
        program.show_in(&mut policy);
        let mut args = vec![ARGUMENT.to_owned()];
        if let Some(lab) = &self.options.lab {
            args.push(lab.display().to_string());
        }
        Ok(Order {
            program: program.path().to_owned(),
            args,
            cwd: PathBuf::from("/"),
            output_limit_bytes: ERRORS_BYTES,
            foreground: true,
            errors_apart: true,
            redact: self.options.secrets.clone(),
            lab: self.options.lab.clone(),
            // It bounds its own memory as well.
            limits: self.options.limits,
            confined: Some(Box::new(Confined {
                policy,
                is_read_only: false,
                hosts: Vec::new(),
            })),
            ..Order::default()
        })
    }
}

impl Process {
    /// Sends a request and waits for the report. After an error the process must be ended: it may answer this request in
    /// place of the next one, or never.
    pub fn ask(&mut self, request: &[u8], stop: &Stop) -> Result<Vec<u8>, NoReport> {
        let until = Instant::now() + PATIENCE;
        // A process that did not get all of a request does nothing.
        let sent = self.send(request, stop, until);
        sent.map_err(|error| NoReport::NotAsked(error.to_string()))?;
        let report = self.receive(stop, until);
        report.map_err(|error| NoReport::Lost(error.to_string()))
    }

    fn send(&mut self, message: &[u8], stop: &Stop, until: Instant) -> io::Result<()> {
        // In one piece if it fits into the pipe.
        let framed = [&head(message)?, message].concat();
        let mut rest = framed.as_slice();
        while !rest.is_empty() {
            match rustix::io::write(&self.to, rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(Errno::AGAIN) => wait(&self.to, PollFlags::OUT, stop, until)?,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn receive(&mut self, stop: &Stop, until: Instant) -> io::Result<Vec<u8>> {
        let mut head = [0; 4];
        self.fill(&mut head, stop, until)?;
        let mut message = vec![0; length(head)?];
        self.fill(&mut message, stop, until)?;
        Ok(message)
    }

    fn fill(&mut self, mut buffer: &mut [u8], stop: &Stop, until: Instant) -> io::Result<()> {
        while !buffer.is_empty() {
            match rustix::io::read(&self.from, &mut *buffer) {
                Ok(0) => return Err(io::Error::other("the process for files has ended")),
                Ok(read) => buffer = buffer.get_mut(read..).unwrap_or_default(),
                Err(Errno::AGAIN) => wait(&self.from, PollFlags::IN, stop, until)?,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Kills it and waits until it has ended. Returns why its program was never started, if so.
    pub fn end(self) -> Option<String> {
        Handle::current().block_on(self.ended())
    }

    pub async fn ended(mut self) -> Option<String> {
        self.is_over = true;
        drop(self.task.kill());
        let ended = tokio::time::timeout(END_PATIENCE, self.task.ended()).await;
        let found = ended.ok()?.ok()?;
        // An error leaves files, which the next process removes.
        let _left = fs::remove_dir_all(self.task.dir());
        match found {
            Found::Ended(exit) => exit.error,
            _ => None,
        }
    }

    /// Ends it in the background: it has nothing to do.
    pub fn retire(self) {
        let task = async { drop(self.ended().await) };
        drop(Handle::current().spawn(task));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_over {
            drop(self.task.kill());
        }
    }
}

fn wait(pipe: &impl AsFd, wanted: PollFlags, stop: &Stop, until: Instant) -> io::Result<()> {
    loop {
        stop.check()?;
        if Instant::now() >= until {
            return Err(io::Error::other("the process for files took too long"));
        }
        let mut pipes = [PollFd::new(pipe, wanted)];
        match poll(&mut pipes, Some(&LOOK)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
    }
}
