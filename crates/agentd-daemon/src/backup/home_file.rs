//! The files of a home that backups contain. A backup names them by what they are, never by a path: a file from another source
//! cannot name one outside the home. Everything that is not listed here stays out, the stored secrets first of all.

use super::{Error, Result};
use crate::layout::Layout;
use agentd_core::id::{AgentId, TaskId};
use agentd_files::foreign::{self, Links};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum HomeFile {
    /// `config.toml`: the user's settings. It names keys, and contains none. The addresses of webhooks, which may contain a
    /// token, are left out.
    Config,
    /// `hooks.json`: the user's hooks.
    Hooks,
    /// `trusted.json`: which files of projects the user trusts.
    Trusted,
    /// The whole output of a call, a hook or a command, of which the model was given only parts.
    Output { agent: AgentId, name: OutputName },
    /// A file of a task.
    Task {
        agent: AgentId,
        task: TaskId,
        part: TaskPart,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskPart {
    Output,
    Errors,
    Exit,
}

impl TaskPart {
    const ALL: [Self; 3] = [Self::Output, Self::Errors, Self::Exit];

    const fn file(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Errors => "errors",
            Self::Exit => "exit",
        }
    }
}

/// The name of a file of kept output: letters, digits, `-` and `_`, and one extension. It cannot be a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OutputName(String);

impl TryFrom<String> for OutputName {
    type Error = String;

    fn try_from(name: String) -> std::result::Result<Self, String> {
        let is_good = |part: &str| {
            let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            !part.is_empty() && part.chars().all(good)
        };
        let parts: Vec<&str> = name.split('.').collect();
        match parts.len() <= 2 && name.len() <= 200 && parts.into_iter().all(is_good) {
            true => Ok(Self(name)),
            false => Err(format!("{name:?} is not the name of a kept output")),
        }
    }
}

impl From<OutputName> for String {
    fn from(name: OutputName) -> Self {
        name.0
    }
}

/// For messages.
impl fmt::Display for HomeFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config => f.write_str("config.toml"),
            Self::Hooks => f.write_str("hooks.json"),
            Self::Trusted => f.write_str("trusted.json"),
            Self::Output { agent, name } => {
                write!(f, "the kept output {} of agent {agent}", name.0)
            }
            Self::Task { agent, task, part } => {
                write!(
                    f,
                    "the file {} of task {task} of agent {agent}",
                    part.file()
                )
            }
        }
    }
}

impl HomeFile {
    pub fn path(&self, layout: &Layout) -> PathBuf {
        match self {
            Self::Config => layout.home().join("config.toml"),
            Self::Hooks => layout.user_hooks(),
            Self::Trusted => layout.trusted(),
            Self::Output { agent, name } => layout.agent_dir(*agent).join("outputs").join(&name.0),
            Self::Task { agent, task, part } => layout.task_dir(*agent, *task).join(part.file()),
        }
    }

    /// Opens it for reading. None if it does not exist, or is not a regular file of its own: a link is not followed.
    pub fn open(&self, layout: &Layout) -> Result<Option<File>> {
        use foreign::Error::{Link, NotFound, NotRegular};
        let path = self.path(layout);
        match foreign::open(&path, Links::NotLast) {
            Ok(file) => Ok(Some(file)),
            Err(NotFound | Link | NotRegular) => Ok(None),
            Err(error) => Err(Error::io(path)(error.into())),
        }
    }

    /// The size, if it exists. For estimates.
    pub fn size(&self, layout: &Layout) -> u64 {
        fs::symlink_metadata(self.path(layout)).map_or(0, |about| about.len())
    }
}

/// The files that a home has now, in a fixed order.
pub fn all(layout: &Layout) -> Result<Vec<HomeFile>> {
    let mut files = vec![HomeFile::Config, HomeFile::Hooks, HomeFile::Trusted];
    let mut agents: Vec<AgentId> = entries(&layout.agents())?;
    agents.sort_unstable();
    for agent in agents {
        let outputs: Vec<Name> = entries(&layout.agent_dir(agent).join("outputs"))?;
        let mut outputs: Vec<OutputName> = outputs.into_iter().map(|Name(name)| name).collect();
        outputs.sort_unstable();
        files.extend(
            outputs
                .into_iter()
                .map(|name| HomeFile::Output { agent, name }),
        );
        let mut tasks = layout.tasks_of(agent);
        tasks.sort_unstable();
        for task in tasks {
            files.extend(TaskPart::ALL.map(|part| HomeFile::Task { agent, task, part }));
        }
    }
    files.retain(|file| fs::symlink_metadata(file.path(layout)).is_ok_and(|about| about.is_file()));
    Ok(files)
}

struct Name(OutputName);

impl FromStr for Name {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        OutputName::try_from(name.to_owned()).map(Self)
    }
}

/// The entries of a directory with names of this kind; none if there is no directory.
fn entries<T: FromStr>(dir: &Path) -> Result<Vec<T>> {
    let read = match fs::read_dir(dir) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(dir)(error)),
    };
    let mut found = Vec::new();
    for entry in read {
        let name = entry.map_err(Error::io(dir))?.file_name();
        found.extend(name.to_str().and_then(|name| name.parse().ok()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_a_path() {
        for good in ["call_1_1_0.txt", "hook-0192.txt", "x"] {
            assert!(OutputName::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "/etc/passwd",
            ".x",
            "a.b.c",
            "a\0",
            "ü",
        ] {
            assert!(OutputName::try_from(bad.to_owned()).is_err(), "{bad:?}");
        }
        let text =
            r#"{"type":"output","agent":"0192d3a0-0000-7000-8000-000000000001","name":"../../x"}"#;
        assert!(serde_json::from_str::<HomeFile>(text).is_err());
        assert!(serde_json::from_str::<HomeFile>(r#"{"type":"secrets"}"#).is_err());
    }

    #[test]
    fn links_and_unknown_files_stay_out() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::new(root.path());
        fs::write(root.path().join("secrets.json"), "{}").unwrap();
        fs::write(root.path().join("config.toml"), "").unwrap();
        std::os::unix::fs::symlink("secrets.json", layout.user_hooks()).unwrap();
        assert_eq!(all(&layout).unwrap(), [HomeFile::Config]);
        assert!(HomeFile::Hooks.open(&layout).unwrap().is_none());
    }
}
