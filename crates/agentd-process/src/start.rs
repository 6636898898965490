//! Starting a program.

use crate::child::Child;
use crate::error::{Error, Result};
use crate::identity::Identity;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A program to start, all that it gets said.
///
/// It runs in a process group of its own, so that a terminal's Ctrl-C does not reach it and it can be
/// ended together with what it starts. A session of its own is something only the program itself can
/// make safely (`setsid` before it does anything else), and only where it leads no group yet.
#[derive(Debug)]
pub struct Start {
    /// A path; nothing is looked up.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The whole environment: nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// None stays where the caller is.
    pub cwd: Option<PathBuf>,
    pub stdin: Stdio,
    pub stdout: Stdio,
    pub stderr: Stdio,
}

impl Start {
    /// A program without arguments, environment, input or output.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            stdin: Stdio::null(),
            stdout: Stdio::null(),
            stderr: Stdio::null(),
        }
    }

    pub fn spawn(self) -> Result<Child> {
        let mut command = Command::new(&self.program);
        command
            .args(self.args)
            .env_clear()
            .envs(self.env)
            .stdin(self.stdin)
            .stdout(self.stdout)
            .stderr(self.stderr)
            .process_group(0);
        if let Some(cwd) = self.cwd {
            command.current_dir(cwd);
        }
        let child = command.spawn().map_err(|source| Error::CannotStart {
            program: self.program,
            source,
        })?;
        // Even if it has ended by now it is still there: nobody but us can reap it.
        let identity = Identity::of(child.id())?;
        Ok(Child::new(child, identity))
    }
}
