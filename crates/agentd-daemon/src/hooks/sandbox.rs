//! The sandbox of hooks that are not the user's own: the sandbox of the agent's tools, with the transcript readable.

use crate::confine::{AgentDirs, confined};
use crate::daemon::Daemon;
use crate::layout::sandboxed_env_name;
use agentd_client::api::Env;
use agentd_core::id::{AgentId, ConversationId};
use agentd_core::spec::AgentSpec;
use agentd_process::task::Confined;
use std::collections::BTreeMap;
use std::path::Path;

/// The variable that names the file in which SessionStart hooks set variables for tools. It has two names.
const ENV_FILE: [&str; 2] = ["AGENTD_ENV_FILE", "CLAUDE_ENV_FILE"];

/// None if the agent's tools have no sandbox either. If the sandbox cannot be created, the hook is not run.
pub fn of_agent(
    daemon: &Daemon,
    agent: AgentId,
    spec: &AgentSpec,
    env: &Env,
    cwd: &Path,
) -> Result<Option<Confined>, String> {
    let dir = daemon.layout.agent_dir(agent);
    let socket_dir = daemon.layout.tool_socket_dir(agent);
    in_dir(daemon, &dir, Some(&socket_dir), spec, env, cwd)
}

/// The same with the sandbox's own files in `dir`: for a test of hooks.
pub fn in_dir(
    daemon: &Daemon,
    dir: &Path,
    socket_dir: Option<&Path>,
    spec: &AgentSpec,
    env: &Env,
    cwd: &Path,
) -> Result<Option<Confined>, String> {
    let made = daemon.layout.make_below(dir);
    made.map_err(|error| error.to_string())?;
    let dirs = AgentDirs {
        cwd,
        dir,
        state: Some(daemon.layout.home()),
        env,
        default_level: daemon.default_level(),
        socket_dir,
    };
    // The user chose services for tools, not for hooks.
    let spec = AgentSpec {
        pass: Vec::new(),
        ..spec.clone()
    };
    let confined = confined(&spec, &dirs).map_err(|error| error.to_string())?;
    Ok(confined.map(|mut confined| {
        confined.policy.kept.push(dir.join("transcripts"));
        confined
    }))
}

/// Replaces paths in a hook's environment by those that are valid in its sandbox.
pub fn adapt(env: &mut BTreeMap<String, String>, conversation: ConversationId, socket: &Path) {
    for name in ENV_FILE {
        if let Some(file) = env.get_mut(name) {
            *file = format!("/tmp/{}", sandboxed_env_name(conversation));
        }
    }
    env.insert("TMPDIR".to_owned(), "/tmp".to_owned());
    env.insert("AGENTD_SOCKET".to_owned(), socket.display().to_string());
}
