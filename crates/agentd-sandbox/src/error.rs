//! The errors of a sandbox, as the shim receives them: the step, the path and the errno.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The policy asks for something that a sandbox cannot give. Nothing was started.
    #[error("the sandbox cannot include {}: {why}", .path.display())]
    Policy { path: PathBuf, why: &'static str },
    /// A step failed before the program ran. Nothing is left running.
    #[error("the sandbox cannot {step}{}: {source}", of(.path.as_deref()))]
    Step {
        step: Step,
        path: Option<PathBuf>,
        #[source]
        source: io::Error,
    },
}

fn of(path: Option<&Path>) -> String {
    path.map(|path| format!(" {}", path.display()))
        .unwrap_or_default()
}

macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident => $text:literal,)*) => {
        /// A step on the way to the program's first instruction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Step { $($(#[$doc])* $name,)* }

        impl Step {
            const ALL: &[Self] = &[$(Self::$name,)*];

            fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

steps! {
    Prepare => "prepare its pipes and arguments",
    /// The kernel refused the namespaces: [`support`](crate::support) says what to change.
    Namespaces => "create its namespaces",
    /// The caller's own hook in the init.
    EnterInit => "run the caller's hook in its first process",
    DieWithShim => "make it end with its parent",
    CloseDescriptors => "close inherited descriptors",
    MapIds => "map the user's id",
    Root => "create an empty root",
    Source => "open",
    Target => "create the mount point",
    Mount => "mount",
    Device => "create the device",
    Proc => "mount its own /proc",
    Cover => "close",
    Pivot => "change to its root",
    Loopback => "bring up its loopback",
    Lock => "lock its mounts together",
    Capabilities => "drop capabilities",
    Watch => "watch",
    Fork => "fork the leader",
    Group => "give the leader a process group",
    Streams => "connect the leader's streams",
    WorkingDir => "change to the working directory",
    Landlock => "apply Landlock rules to",
    /// The caller's own hook in the leader.
    LimitLeader => "apply the leader's limits",
    Seccomp => "filter system calls",
    Exec => "run",
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// A failed step, in the process that took it.
#[derive(Debug)]
pub(crate) struct Failed {
    pub step: Step,
    pub path: Option<PathBuf>,
    pub errno: i32,
}

impl Failed {
    pub fn at(step: Step, path: &Path, error: impl Into<io::Error>) -> Self {
        Self {
            path: Some(path.to_owned()),
            ..Self::new(step, error)
        }
    }

    pub fn new(step: Step, error: impl Into<io::Error>) -> Self {
        let error: io::Error = error.into();
        Self {
            step,
            path: None,
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        }
    }

    /// One byte for the step, four for errno, the rest is the path.
    pub fn encode(&self) -> Vec<u8> {
        use std::os::unix::ffi::OsStrExt as _;
        let at = Step::ALL.iter().position(|step| *step == self.step);
        let mut bytes = vec![at.and_then(|at| u8::try_from(at).ok()).unwrap_or(0)];
        bytes.extend(self.errno.to_ne_bytes());
        if let Some(path) = &self.path {
            bytes.extend(path.as_os_str().as_bytes());
        }
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        use std::os::unix::ffi::OsStrExt as _;
        let (step, rest) = bytes.split_first()?;
        let (errno, path) = rest.split_first_chunk()?;
        let path = (!path.is_empty()).then(|| PathBuf::from(std::ffi::OsStr::from_bytes(path)));
        Some(Self {
            step: *Step::ALL.get(usize::from(*step))?,
            path,
            errno: i32::from_ne_bytes(*errno),
        })
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        Self::Step {
            step: failed.step,
            path: failed.path,
            source: io::Error::from_raw_os_error(failed.errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_survives_the_pipe() {
        for step in Step::ALL {
            let failed = Failed {
                step: *step,
                path: Some("/a/b".into()),
                errno: libc::ENOENT,
            };
            let back = Failed::decode(&failed.encode()).unwrap();
            assert_eq!(back.step, *step);
            assert_eq!(back.path.as_deref(), Some(Path::new("/a/b")));
            assert_eq!(back.errno, libc::ENOENT);
        }
        assert!(Failed::decode(&[]).is_none());
        assert!(Failed::decode(&[0, 1]).is_none());
    }
}
