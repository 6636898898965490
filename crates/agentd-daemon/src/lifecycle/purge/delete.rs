//! Asks the program of an ACP agent to delete its sessions of purged conversations. A worker starts the program in its
//! sandbox, with the home that it had for the conversation. Nothing that fails here fails the purge.

use super::sessions::Sessions;
use crate::clock;
use crate::confine::{self, AgentDirs};
use crate::daemon::{AgentGuard, Daemon};
use crate::error::Error;
use crate::lifecycle::worker::{self, WorkDir};
use crate::spawn::blocking;
use crate::tool_env::{self, Owner};
use agentd_client::api::{Env, Purged};
use agentd_core::id::{AgentId, ConversationId};
use agentd_core::outer::acp::work::{ARGUMENT, Report, Work};
use agentd_core::secrets::Secrets;
use agentd_core::spec::AgentSpec;
use agentd_process::task::{Limits, Order};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a program may take to start and to delete one session.
const TIME_LIMIT_MS: u64 = 20_000;
/// Besides that: to end the program.
const EXTRA_MS: u64 = 20_000;
/// After this time no further program is started.
const PATIENCE: Duration = Duration::from_secs(60);

/// Copied under the agent's lock, so that the lock is not held while programs run.
pub struct Scene {
    agent: AgentId,
    name: String,
    spec: AgentSpec,
    env: Arc<Env>,
    secrets: Secrets,
}

impl Scene {
    /// An error, for users, if the agent's program must not be started.
    pub fn of(guard: &AgentGuard<'_>) -> Result<Self, String> {
        // The program of an imported agent is a stranger's.
        guard.check_released().map_err(|error| text(&error))?;
        let mut spec = (*guard.state.spec).clone();
        // A program that lacks a key may still delete a session.
        let _missing = spec.resolve_env(&guard.env);
        Ok(Self {
            agent: guard.state.id,
            name: guard.state.name.clone(),
            spec,
            env: Arc::clone(&guard.env),
            secrets: guard.secrets(),
        })
    }

    /// Blocks.
    fn work(
        &self,
        daemon: &Daemon,
        (conversation, session): (ConversationId, String),
        state: &Path,
    ) -> Result<(Order, Work), String> {
        let layout = &daemon.layout;
        let program = self.spec.command.clone().unwrap_or_default();
        let cwd = PathBuf::from(self.spec.cwd.clone().unwrap_or_default());
        if !cwd.is_dir() {
            return Err(format!("{} is not a directory", cwd.display()));
        }
        let dir = layout.outer_dir(self.agent, conversation);
        let dirs = AgentDirs {
            cwd: &cwd,
            dir: &dir,
            state: Some(layout.home()),
            env: &self.env,
            default_level: daemon.default_level(),
            // It has nothing to ask the daemon for.
            socket_dir: None,
        };
        let confined = confine::confined(&self.spec, &dirs);
        let confined = confined.map_err(|error| error.to_string())?;
        let owner = Owner {
            home: Some(layout.home()),
            name: &self.name,
            socket: None,
        };
        let of_hooks = Env::new();
        let (spec, callers) = (&self.spec, &self.env);
        let mut env = tool_env::tool_env(spec, &of_hooks, callers, &owner, confined.as_ref());
        env.insert("AGENTD_CONVERSATION".to_owned(), conversation.to_string());
        let limits = Limits {
            open_files: self.spec.limits.task_open_files,
            memory_bytes: self.spec.limits.task_memory_bytes,
            processes: self.spec.limits.task_processes,
        };
        let value = |error: serde_json::Error| error.to_string();
        let confined = confined.map(serde_json::to_value).transpose();
        let work = Work {
            session,
            program: program.program,
            args: program.args,
            env,
            cwd,
            state: state.join("program"),
            confined: confined.map_err(value)?,
            limits: serde_json::to_value(limits).map_err(value)?,
            secrets: self.secrets.values(),
            time_limit_ms: TIME_LIMIT_MS,
        };
        let order = worker::order(ARGUMENT, TIME_LIMIT_MS + EXTRA_MS);
        worker::make_dir(state).map_err(|error| error.to_string())?;
        Ok((order, work))
    }
}

/// Asks for each session, and adds to the receipt what was deleted and what is left.
pub async fn delete(
    daemon: &Arc<Daemon>,
    scene: Result<Scene, String>,
    sessions: &Sessions,
    purged: &mut Purged,
) {
    let scene = sessions.check_program().and(scene).map(Arc::new);
    let began = Instant::now();
    purged.left.clear();
    for (conversation, id) in &sessions.known {
        let asked = match &scene {
            Ok(_) if began.elapsed() > PATIENCE => {
                Err("the deletion of other sessions took too long".to_owned())
            }
            Ok(scene) => ask(daemon, scene, (*conversation, id.clone())).await,
            Err(why) => Err(why.clone()),
        };
        match asked.unwrap_or_else(Report::Failed) {
            Report::Deleted => purged.deleted.push(sessions.deleted(*conversation, id)),
            Report::NotOffered => purged.left.extend(sessions.not_offered(*conversation, id)),
            Report::Failed(why) => {
                tracing::warn!(%conversation, %why, "session of the agent's program not deleted");
                purged.left.push(sessions.failed(*conversation, id, why));
            }
        }
    }
}

async fn ask(
    daemon: &Arc<Daemon>,
    scene: &Arc<Scene>,
    session: (ConversationId, String),
) -> Result<Report, String> {
    let id = clock::new_id().to_string();
    let dir = daemon.layout.mcp_ask_dir(scene.agent, &id);
    let work_dir = WorkDir::new(dir.clone());
    let (at, owned, scene) = (dir.clone(), Arc::clone(daemon), Arc::clone(scene));
    let ready = blocking(move || scene.work(&owned, session, &at)).await;
    let report = match ready {
        Ok((order, work)) => worker::run(&dir, order, &work).await,
        Err(why) => Err(why),
    };
    work_dir.remove().await;
    report
}

fn text(error: &Error) -> String {
    let parts = [Some(error.what.clone()), error.why.clone()];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(": ")
}
