//! The paths and locks of the state directory.

mod backups;
mod finished;
mod outbox;
mod owned_dirs;
mod restores;

pub use outbox::RUNNING_MARK;

use agentd_core::id::{AgentId, TaskId};
use agentd_failpoint as failpoint;
use agentd_files::own;
use agentd_process::Identity;
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(Clone, Debug)]
pub struct Layout {
    home: PathBuf,
}

impl Layout {
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into() }
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Sockets, locks and marks: files that matter only while processes run.
    pub fn run(&self) -> PathBuf {
        self.home.join("run")
    }

    pub fn api_socket(&self) -> PathBuf {
        self.run().join("api.sock")
    }

    pub fn link_socket(&self) -> PathBuf {
        self.run().join("link.sock")
    }

    /// Held by the daemon for as long as it lives.
    pub fn daemon_lock(&self) -> PathBuf {
        self.run().join("daemon.lock")
    }

    /// Held by the client that starts a daemon, until the daemon answers.
    pub fn start_lock(&self) -> PathBuf {
        self.run().join("start.lock")
    }

    /// The log of a daemon in the background.
    pub fn daemon_log(&self) -> PathBuf {
        self.home.join("daemon.log")
    }

    fn runtime_locks(&self) -> PathBuf {
        self.run().join("agents")
    }

    fn runtime_lock(&self, agent: AgentId) -> PathBuf {
        self.runtime_locks().join(format!("{agent}.lock"))
    }

    /// The digest of the secret that the newest process of an agent was given.
    fn proof(&self, agent: AgentId) -> PathBuf {
        self.runtime_locks().join(format!("{agent}.proof"))
    }

    /// Bound into the sandbox of the agent's tools: it holds their socket and nothing else.
    pub fn tool_socket_dir(&self, agent: AgentId) -> PathBuf {
        self.run().join("a").join(agent.to_string())
    }

    pub fn tool_socket(&self, agent: AgentId) -> PathBuf {
        self.tool_socket_dir(agent).join("s")
    }

    /// The directories of all agents.
    pub fn agents(&self) -> PathBuf {
        self.home.join("agents")
    }

    /// The files of an agent: tasks, tool outputs, transcripts and its log.
    pub fn agent_dir(&self, agent: AgentId) -> PathBuf {
        self.agents().join(agent.to_string())
    }

    fn tasks_dir(&self, agent: AgentId) -> PathBuf {
        self.agent_dir(agent).join("tasks")
    }

    pub fn task_dir(&self, agent: AgentId, task: TaskId) -> PathBuf {
        self.tasks_dir(agent).join(task.to_string())
    }

    /// The directories of an outer agent's conversations: what its program keeps.
    pub fn outer_dirs(&self, agent: AgentId) -> PathBuf {
        self.agent_dir(agent).join("outer")
    }

    /// The directory of one of them.
    pub fn outer_dir(
        &self,
        agent: AgentId,
        conversation: agentd_core::id::ConversationId,
    ) -> PathBuf {
        self.outer_dirs(agent).join(conversation.to_string())
    }

    /// Deletes what an outer agent's program keeps of a conversation.
    pub fn remove_outer_dir(
        &self,
        agent: AgentId,
        conversation: agentd_core::id::ConversationId,
    ) -> io::Result<()> {
        match remove_tree(&self.outer_dir(agent, conversation)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The agent that a task belongs to, by its directory.
    pub fn agent_of_task(&self, task: TaskId) -> Option<AgentId> {
        let mut agents = ids_in(&self.agents());
        agents.find(|agent| self.task_dir(*agent, task).exists())
    }

    /// The tasks of an agent that have a directory, ended ones included.
    pub fn tasks_of(&self, agent: AgentId) -> Vec<TaskId> {
        ids_in(&self.tasks_dir(agent)).collect()
    }

    /// The tasks of all agents that have a directory.
    pub fn all_tasks(&self) -> Vec<TaskId> {
        let agents = ids_in::<AgentId>(&self.agents());
        agents.flat_map(|agent| self.tasks_of(agent)).collect()
    }

    /// The user's own hooks.
    pub fn user_hooks(&self) -> PathBuf {
        self.home.join("hooks.json")
    }

    /// What the user stored with `agentd secret`.
    pub fn secrets(&self) -> PathBuf {
        self.home.join("secrets.json")
    }

    /// Which files of projects the user trusts.
    pub fn trusted(&self) -> PathBuf {
        self.home.join("trusted.json")
    }

    /// The variables that hooks set for the tools of a conversation.
    pub fn env_file(
        &self,
        agent: AgentId,
        conversation: agentd_core::id::ConversationId,
    ) -> PathBuf {
        self.agent_dir(agent)
            .join("env")
            .join(conversation.to_string())
    }

    /// The same for hooks in the agent's sandbox. It is in the agent's `tmp` directory, which these hooks and the
    /// agent's tools see as `/tmp`.
    pub fn sandboxed_env_file(
        &self,
        agent: AgentId,
        conversation: agentd_core::id::ConversationId,
    ) -> PathBuf {
        self.agent_dir(agent)
            .join("tmp")
            .join(sandboxed_env_name(conversation))
    }

    /// The standard error output of the agent's process.
    pub fn runtime_log(&self, agent: AgentId) -> PathBuf {
        self.agent_dir(agent).join("runtime.log")
    }

    /// Creates the missing directories, closed to other users.
    pub fn make(&self) -> io::Result<()> {
        for dir in [self.home.clone(), self.run(), self.runtime_locks()] {
            private(&dir)?;
            keep_private(&dir)?;
        }
        Ok(())
    }

    /// Creates a directory inside the home, with its parents up to the home. A deleted home is not created again: that
    /// would hide that its content is lost.
    pub fn make_below(&self, dir: &Path) -> io::Result<()> {
        let outside = |_| io::Error::other(format!("{} is outside the home", dir.display()));
        let below = dir.strip_prefix(&self.home).map_err(outside)?;
        let mut made = self.home.clone();
        for part in below.components() {
            made.push(part);
            match std::fs::DirBuilder::new().mode(0o700).create(&made) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                done => done?,
            }
            if failpoint::injected_bug("state_open") {
                std::fs::set_permissions(&made, Permissions::from_mode(0o777))?;
            }
        }
        Ok(())
    }

    pub fn make_agent_dir(&self, agent: AgentId) -> io::Result<()> {
        self.make_below(&self.agent_dir(agent))
    }

    /// Agents whose processes are alive, including those that an earlier daemon started.
    pub fn taken_runtime_locks(&self) -> io::Result<Vec<(AgentId, Identity)>> {
        let mut taken = Vec::new();
        for entry in std::fs::read_dir(self.runtime_locks())? {
            let name = entry?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".lock"));
            let Some(agent) = id.and_then(|id| id.parse().ok()) else {
                continue;
            };
            if let Some(holder) = self.holder(agent)? {
                taken.push((agent, holder));
            }
        }
        Ok(taken)
    }

    /// Writes the digest of the secret that a process must present. Called before the process is started.
    pub fn write_proof(&self, agent: AgentId, digest: &str) -> io::Result<()> {
        self.make_below(&self.runtime_locks())?;
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.proof(agent))?;
        file.write_all(digest.as_bytes())
    }

    /// The digest of the secret that the newest process of an agent must present.
    pub fn read_proof(&self, agent: AgentId) -> io::Result<String> {
        own::read_to_string(self.proof(agent))
    }

    /// The agent whose task has this directory.
    pub fn agent_of_dir(&self, dir: &Path) -> Option<AgentId> {
        let below = dir.strip_prefix(self.agents()).ok()?;
        let mut parts = below.components();
        let agent = parts.next()?.as_os_str().to_str()?.parse().ok()?;
        (parts.next()?.as_os_str() == "tasks").then_some(agent)
    }

    /// Removes an agent's directory, tool socket, digest and lock. The caller ensures that no process runs the agent.
    pub fn forget_agent(&self, agent: AgentId) -> io::Result<()> {
        let gone = |removed: io::Result<()>| match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        gone(remove_tree(&self.agent_dir(agent)))?;
        gone(remove_tree(&self.tool_socket_dir(agent)))?;
        gone(std::fs::remove_file(self.proof(agent)))?;
        gone(std::fs::remove_file(self.runtime_lock(agent)))
    }

    /// The process that runs this agent: the one that holds its runtime lock.
    pub fn holder(&self, agent: AgentId) -> io::Result<Option<Identity>> {
        let mut file = match File::open(self.runtime_lock(agent)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match file.try_lock_shared() {
            Ok(()) => return Ok(None),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // If the lock was just taken, the file may still be empty (then none), or name the previous holder.
        Ok(serde_json::from_str(&text).ok())
    }
}

/// The directories in a directory whose names are ids; none if it cannot be read.
fn ids_in<T: FromStr>(dir: &Path) -> impl Iterator<Item = T> + use<T> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok())
}

/// Removes a directory with everything in it, including directories that a tool or overlayfs has left without
/// permission to enter. Symbolic links are removed, not followed.
fn remove_tree(dir: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(dir)?;
            std::fs::remove_dir_all(dir)
        }
        removed => removed,
    }
}

fn open_up(dir: &Path) -> io::Result<()> {
    std::fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

/// The name of [`Layout::sandboxed_env_file`] in the `/tmp` of a sandbox.
pub fn sandboxed_env_name(conversation: agentd_core::id::ConversationId) -> String {
    format!("agentd-env-{conversation}")
}

/// Refuses a directory of another user, who could read and replace its content. Closes a directory of this user to
/// other users.
pub fn keep_private(dir: &Path) -> io::Result<()> {
    let metadata = std::fs::metadata(dir)?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if !is_ours && !failpoint::injected_bug("owner_unchecked") {
        let why = format!("{} belongs to another user", dir.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    if failpoint::injected_bug("state_open") {
        return std::fs::set_permissions(dir, Permissions::from_mode(0o777));
    }
    if metadata.mode() & 0o077 != 0 {
        tracing::warn!(dir = %dir.display(), "directory was open to other users: mode set to 700");
        std::fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Creates a directory that other users cannot access.
pub fn private(dir: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

/// The right to run an agent, held by its process.
#[derive(Debug)]
pub struct RuntimeLock {
    _file: File,
}

impl RuntimeLock {
    pub fn take(layout: &Layout, agent: AgentId) -> io::Result<Self> {
        layout.make_below(&layout.runtime_locks())?;
        layout.make_agent_dir(agent)?;
        failpoint::hit("before", "runtime-lock");
        let mut file = hold(&layout.runtime_lock(agent))?;
        failpoint::hit("in", "runtime-lock");
        let me = Identity::current().map_err(io::Error::other)?;
        let text = serde_json::to_vec(&me)?;
        // Overwritten in place, which needs no new disk space: an agent can run on a full disk.
        file.rewind()?;
        file.write_all(&text)?;
        file.set_len(text.len() as u64)?;
        failpoint::hit("after", "runtime-lock");
        Ok(Self { _file: file })
    }
}

/// Locks a file, which is created if it does not exist. `WouldBlock` if another process holds the lock.
pub fn hold(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
