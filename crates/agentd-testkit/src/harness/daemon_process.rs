//! A daemon in the foreground: started, waited for until it answers, signalled, and ended.

use super::poll::Poll;
use super::program::Program;
use agentd_client::Client;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// A running `agentd daemon run`. It is killed when it is dropped; its agents' processes are not.
#[derive(Debug)]
pub struct DaemonProcess {
    child: Child,
    client: Client,
    ready_after: Duration,
}

/// A daemon that did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the daemon cannot be started: {0}")]
    Io(#[from] io::Error),
    #[error("the daemon ended before it answered ({status}):\n{log}")]
    Ended { status: ExitStatus, log: String },
    #[error("the daemon does not answer:\n{log}")]
    NoAnswer { log: String },
}

impl DaemonProcess {
    /// Starts a daemon, and waits until it answers. The runtime is for the requests.
    pub fn start(program: &Program, runtime: &Runtime, poll: Poll) -> Result<Self, Error> {
        let command = program.daemon_by(program.command())?;
        Self::start_by(command, program, runtime, poll)
    }

    /// The same with a command that the caller has changed.
    pub fn start_by(
        mut command: Command,
        program: &Program,
        runtime: &Runtime,
        poll: Poll,
    ) -> Result<Self, Error> {
        let client = program.client();
        let begin = Instant::now();
        let mut daemon = Self {
            child: command.spawn()?,
            client,
            ready_after: Duration::ZERO,
        };
        let answer = poll.until("an answer", || {
            let left = poll.limit.saturating_sub(begin.elapsed());
            if daemon.answers(runtime, left) {
                return Some(Ok(begin.elapsed()));
            }
            match daemon.child.try_wait() {
                Ok(None) => None,
                Ok(Some(status)) => Some(Err(Error::Ended {
                    status,
                    log: program.log(),
                })),
                Err(error) => Some(Err(error.into())),
            }
        });
        let no_answer = |_| Err(Error::NoAnswer { log: program.log() });
        daemon.ready_after = answer.unwrap_or_else(no_answer)?;
        Ok(daemon)
    }

    fn answers(&self, runtime: &Runtime, within: Duration) -> bool {
        let answer = async { tokio::time::timeout(within, self.client.daemon()).await };
        matches!(runtime.block_on(answer), Ok(Ok(_)))
    }

    /// The time from its start until it answered.
    pub const fn ready_after(&self) -> Duration {
        self.ready_after
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// How it ended, if it has.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// Ends it with SIGKILL.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        self.child.kill()?;
        self.child.wait()
    }

    /// Asks it to stop, which also ends its agents' processes, and waits for its end. If it does not answer, it is
    /// killed.
    pub fn stop(&mut self, runtime: &Runtime) -> io::Result<ExitStatus> {
        if runtime.block_on(self.client.stop_daemon()).is_err() {
            self.child.kill()?;
        }
        self.child.wait()
    }
}

impl Drop for DaemonProcess {
    fn drop(&mut self) {
        // A process that was waited for is not signalled again.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_dir::TestDir;
    use super::*;

    const POLL: Poll = Poll::new(Duration::from_millis(1), Duration::from_secs(60));

    #[test]
    fn a_daemon_that_ends_at_once_is_an_error_with_its_log() {
        let dir = TestDir::temporary().unwrap();
        let program = dir.program("/bin/sh");
        std::fs::write(dir.work().join("daemon"), "echo \"no $1 here\" >&2; exit 3").unwrap();
        let runtime = Runtime::new().unwrap();
        let error = DaemonProcess::start(&program, &runtime, POLL).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("exit status: 3"), "{text}");
        assert!(text.contains("no run here"), "{text}");
    }

    #[test]
    fn a_daemon_that_does_not_answer_in_time_is_an_error() {
        let dir = TestDir::temporary().unwrap();
        let program = dir.program("/bin/sh");
        std::fs::write(dir.work().join("daemon"), "exec sleep 600").unwrap();
        let runtime = Runtime::new().unwrap();
        let poll = Poll::new(Duration::ZERO, Duration::ZERO);
        let error = DaemonProcess::start(&program, &runtime, poll).unwrap_err();
        assert!(matches!(error, Error::NoAnswer { .. }), "{error}");
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let dir = TestDir::temporary().unwrap();
        let program = dir.program("/nowhere/agentd");
        let runtime = Runtime::new().unwrap();
        let error = DaemonProcess::start(&program, &runtime, POLL).unwrap_err();
        assert!(matches!(error, Error::Io(_)), "{error}");
    }
}
