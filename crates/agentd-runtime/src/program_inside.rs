//! This program, for a process of its own in a sandbox: the file that the process runs, which nothing in that sandbox can
//! change.

use agentd_process::{copy_own_program, own_program};
use agentd_sandbox::Policy;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Made new for each sandbox.
const NOT_SHOWN: [&str; 2] = ["/proc", "/dev"];

/// The file that a process runs.
#[derive(Clone, Debug)]
pub enum Program {
    Own(PathBuf),
    /// In a directory of agentd's own, which no tool can change.
    Copy(PathBuf),
}

impl Program {
    pub fn path(&self) -> &Path {
        match self {
            Self::Own(path) | Self::Copy(path) => path,
        }
    }

    /// Makes the file visible. The sandbox refuses a readable path that a tool can change.
    pub fn show_in(&self, policy: &mut Policy) {
        match self {
            Self::Own(path) => policy.readable.push(path.clone()),
            Self::Copy(path) => policy.kept.push(path.clone()),
        }
    }
}

/// Chooses the file for each process: an upgrade may replace the program while this process runs.
pub struct ProgramInside {
    /// Where a copy is made, if one is needed. The next process of the agent replaces it.
    copy: PathBuf,
    /// Whether this process has made the copy.
    is_copied: Mutex<bool>,
}

impl ProgramInside {
    pub const fn new(copy: PathBuf) -> Self {
        Self {
            copy,
            is_copied: Mutex::new(false),
        }
    }

    /// This program; a copy of it, if its file was replaced, or if a process in the sandbox could replace it.
    pub fn choose(&self, policy: Option<&Policy>) -> io::Result<Program> {
        let changeable = policy.map(changeable).unwrap_or_default();
        if let Some(program) = own_program(&changeable) {
            return Ok(Program::Own(program));
        }
        let mut is_copied = self
            .is_copied
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !*is_copied {
            copy_own_program(&self.copy)?;
            *is_copied = true;
        }
        Ok(Program::Copy(self.copy.clone()))
    }
}

/// The directories of the host that a process in this sandbox can change, and those that it does not see.
fn changeable(policy: &Policy) -> Vec<PathBuf> {
    let trees = policy.writable.iter().chain(&policy.closed);
    let own = [&policy.tmp, &policy.own_home];
    let layers = policy.caches.iter().map(|caches| &caches.upper);
    let of_host = trees.chain(own).chain(layers).cloned();
    of_host.chain(NOT_SHOWN.map(PathBuf::from)).collect()
}
