//! Where a command of the user runs: in the directory, sandbox and environment of the agent's tools.

use super::check_free;
use crate::confine::{self, AgentDirs};
use crate::daemon::{AgentGuard, Daemon};
use crate::error::{Error, Kind, Result};
use crate::project::skills::{self, Skills};
use crate::tool_env::{self, Owner};
use agentd_client::api::{Env, RunCommand};
use agentd_core::id::{AgentId, ConversationId};
use agentd_core::secrets::Secrets;
use agentd_core::spec::AgentSpec;
use agentd_process::task::{Confined, Limits, Order};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How long a command may take to end after SIGTERM, before it is killed.
const GRACE_MS: u64 = 2_000;

/// Copied under the agent's lock, so that the lock is not held while files are read.
pub struct CommandScene {
    agent: AgentId,
    name: String,
    conversation: ConversationId,
    spec: AgentSpec,
    env: Arc<Env>,
    secrets: Secrets,
}

impl CommandScene {
    pub fn of(guard: &mut AgentGuard<'_>, run: &RunCommand) -> Result<Self> {
        check_free(guard)?;
        guard.merge_env(&run.env);
        Self::now(guard)
    }

    fn now(guard: &mut AgentGuard<'_>) -> Result<Self> {
        let conversation = guard.state.tree.current().ok_or_else(|| {
            let what = "the agent has no conversation";
            Error::new(Kind::Conflict, what)
        })?;
        Ok(Self {
            agent: guard.state.id,
            name: guard.state.name.clone(),
            conversation,
            spec: (*guard.state.spec).clone(),
            env: Arc::clone(&guard.env),
            secrets: guard.secrets(),
        })
    }

    /// For an MCP server that the user asks: in the same place, but it is not a command of the conversation.
    pub fn for_server(guard: &mut AgentGuard<'_>, env: &Env) -> Result<Self> {
        // The server of an imported agent is a stranger's program.
        guard.check_released()?;
        guard.merge_env(env);
        Self::now(guard)
    }

    pub const fn spec(&self) -> &AgentSpec {
        &self.spec
    }

    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The order for the shim. Blocks.
    pub fn order(&mut self, daemon: &Daemon, line: &str, time_limit_ms: u64) -> Result<Order> {
        let layout = &daemon.layout;
        let of_hooks = tool_env::hook_variables(layout, self.agent, self.conversation);
        let cwd = PathBuf::from(self.spec.cwd.clone().unwrap_or_default());
        if !cwd.is_dir() {
            let what = "the agent's working directory does not exist";
            let why = format!("{} is not a directory", cwd.display());
            return Err(Error::new(Kind::Refused, what).because(why));
        }
        let confined = self.confined(daemon, &cwd)?;
        let socket = layout.tool_socket(self.agent);
        let owner = Owner {
            home: Some(layout.home()),
            name: &self.name,
            socket: Some(&socket),
        };
        let (spec, callers) = (&self.spec, &self.env);
        let mut env = tool_env::tool_env(spec, &of_hooks, callers, &owner, confined.as_ref());
        let conversation = self.conversation.to_string();
        env.insert("AGENTD_CONVERSATION".to_owned(), conversation);
        let limits = &self.spec.limits;
        Ok(Order {
            program: tool_env::shell(),
            args: vec!["-c".to_owned(), line.to_owned()],
            env,
            cwd,
            time_limit_ms: Some(time_limit_ms),
            grace_ms: GRACE_MS,
            output_limit_bytes: limits.task_output_bytes,
            foreground: true,
            errors_apart: false,
            stdin: None,
            owner: None,
            redact: self.secrets.values(),
            lab: agentd_failpoint::dir().map(Path::to_owned),
            limits: Limits {
                open_files: limits.task_open_files,
                memory_bytes: limits.task_memory_bytes,
                processes: limits.task_processes,
            },
            confined: confined.map(Box::new),
        })
    }

    /// The sandbox of the agent's tools; none if they have none.
    fn confined(&mut self, daemon: &Daemon, cwd: &Path) -> Result<Option<Confined>> {
        let layout = &daemon.layout;
        let unconfined = |error: &dyn std::error::Error| {
            let what = "the sandbox of the command cannot be set up";
            Error::new(Kind::Refused, what).because(error)
        };
        let dir = layout.agent_dir(self.agent);
        layout
            .make_below(&dir)
            .map_err(|error| unconfined(&error))?;
        let socket_dir = layout.tool_socket_dir(self.agent);
        let dirs = AgentDirs {
            cwd,
            dir: &dir,
            state: Some(layout.home()),
            env: &self.env,
            default_level: daemon.default_level(),
            socket_dir: Some(&socket_dir),
        };
        let skills = match self.spec.instructions {
            true => skills::of(layout, cwd, dirs.home().as_deref()),
            false => Skills::default(),
        };
        tool_env::add_skills(&mut self.spec, &skills);
        confine::confined(&self.spec, &dirs).map_err(|error| unconfined(&error))
    }
}
