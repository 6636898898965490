//! The directories of hooks and of commands that the user runs. Each has a file with the id of its agent.

use super::{Layout, ids_in};
use agentd_core::id::{AgentId, CommandId, HookId};
use agentd_files::own;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The file in the directory of a hook or of a user's command that contains the id of its agent.
const OWNER: &str = "agent";

/// The directory of workers of an agent: processes that ask its MCP servers or its program, below that of the agent.
const MCP_ASKS: &str = "mcp-ask";

impl Layout {
    /// One directory for each hook that is running, or whose end is not recorded yet.
    pub fn hooks(&self) -> PathBuf {
        self.home.join("hooks")
    }

    pub fn hook_dir(&self, hook: HookId) -> PathBuf {
        self.hooks().join(hook.to_string())
    }

    /// One directory for each command of the user that is running, or whose end is not recorded yet.
    pub fn commands(&self) -> PathBuf {
        self.home.join("commands")
    }

    pub fn command_dir(&self, command: CommandId) -> PathBuf {
        self.commands().join(command.to_string())
    }

    /// The user's commands that have a directory.
    pub fn all_commands(&self) -> Vec<CommandId> {
        ids_in(&self.commands()).collect()
    }

    /// The directory of one question to an MCP server or to the agent's program: see `lifecycle/worker`.
    pub fn mcp_ask_dir(&self, agent: AgentId, id: &str) -> PathBuf {
        self.agent_dir(agent).join(MCP_ASKS).join(id)
    }

    /// The directories of all such questions.
    pub fn all_mcp_asks(&self) -> Vec<PathBuf> {
        let below = |dir: &Path| {
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let agents = below(&self.agents()).into_iter();
        agents.flat_map(|dir| below(&dir.join(MCP_ASKS))).collect()
    }

    /// The whole output of a user's command, if the model was given only parts of it. Tools can read it.
    pub fn command_output(&self, agent: AgentId, command: CommandId) -> PathBuf {
        let outputs = self.agent_dir(agent).join("outputs");
        outputs.join(format!("command-{command}.txt"))
    }

    /// Creates the directory of a hook or of a user's command. A file in it has the id of its agent. Both are durable
    /// when this returns: the journal then says that the hook or the command runs, and a daemon after a power failure
    /// finds it by its directory.
    pub fn make_owned_dir(&self, dir: &Path, owner: Option<AgentId>) -> io::Result<()> {
        let parent = dir.parent().unwrap_or(dir);
        let is_parent_new = !parent.exists();
        self.make_below(dir)?;
        let mut file = File::create(dir.join(OWNER))?;
        let owner = owner.map(|agent| agent.to_string());
        file.write_all(owner.unwrap_or_default().as_bytes())?;
        file.sync_all()?;
        File::open(dir)?.sync_all()?;
        File::open(parent)?.sync_all()?;
        match is_parent_new {
            true => File::open(&self.home)?.sync_all(),
            false => Ok(()),
        }
    }

    /// The agent of the hook or of the user's command with this directory.
    pub fn owner(&self, dir: &Path) -> Option<AgentId> {
        let text = own::read_to_string(dir.join(OWNER)).ok()?;
        text.trim().parse().ok()
    }
}
