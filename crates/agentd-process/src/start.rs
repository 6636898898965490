//! Starting a program.

use crate::child::Child;
use crate::children;
use crate::error::{Error, Result};
use crate::identity::Identity;
use rustix::process::setsid;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What a program does not share with this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ownership {
    /// A process group: a terminal's Ctrl-C does not reach it, and it can be ended together with its children.
    #[default]
    Group,
    /// A session: it is detached from our terminal and outlives it.
    Session,
    /// Nothing: it uses our terminal in our place, as an editor does.
    Nothing,
}

/// A program to start, with everything that it gets.
#[derive(Debug)]
pub struct Start {
    /// A path; there is no search in `PATH`.
    pub program: PathBuf,
    /// What `ps` shows as the name of the program. `None` means its path.
    pub name: Option<&'static str>,
    pub args: Vec<OsString>,
    /// The whole environment: nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// `None` means the caller's working directory.
    pub cwd: Option<PathBuf>,
    pub stdin: Stdio,
    pub stdout: Stdio,
    pub stderr: Stdio,
    pub own: Ownership,
}

impl Start {
    /// A program without arguments, environment, input or output.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            name: None,
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            stdin: Stdio::null(),
            stdout: Stdio::null(),
            stderr: Stdio::null(),
            own: Ownership::default(),
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
            .stderr(self.stderr);
        if let Some(name) = self.name {
            command.arg0(name);
        }
        match self.own {
            Ownership::Group => {
                command.process_group(0);
            }
            Ownership::Session => begin_session(&mut command),
            Ownership::Nothing => {}
        }
        if let Some(cwd) = self.cwd {
            command.current_dir(cwd);
        }
        let child = children::spawn(&mut command).map_err(|source| Error::CannotStart {
            program: self.program,
            source,
        })?;
        // Even if it has ended, its pid is still valid: only this process can reap it.
        match Identity::of(child.id()) {
            Ok(identity) => Ok(Child::new(child, identity)),
            Err(error) => {
                children::end(child);
                Err(error)
            }
        }
    }
}

/// Creates the session before the program runs: otherwise a Ctrl-C could reach the program first.
fn begin_session(command: &mut Command) {
    let prepare = || {
        setsid()?;
        Ok(())
    };
    #[expect(unsafe_code, reason = "a session of the program, not of ours")]
    // SAFETY: between fork and exec the closure makes only the system call setsid; it takes no lock
    // and allocates nothing.
    unsafe {
        command.pre_exec(prepare);
    }
}
