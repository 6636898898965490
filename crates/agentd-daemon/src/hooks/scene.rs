//! The state of an agent from which the input and environment of its hooks are built.

use super::{run, sandbox, sources};
use crate::agent_handle::AgentHandle;
use crate::daemon::Daemon;
use crate::title;
use agentd_core::hook::{HookEvent, HookInvocation, Setting};
use agentd_core::id::ConversationId;
use agentd_core::permission;
use agentd_core::secrets::Secrets;
use agentd_process::task::Confined;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Copied under the agent's lock, so that hooks run without it.
pub(super) struct Scene {
    pub sources: Vec<sources::Source>,
    pub conversation: ConversationId,
    pub setting: Setting,
    pub env: BTreeMap<String, String>,
    pub secrets: Secrets,
    pub cwd: PathBuf,
    /// The sandbox of the hooks that are not the user's own.
    pub confined: std::result::Result<Option<Confined>, String>,
}

/// None if no hook may run for the agent.
pub(super) async fn scene(
    daemon: &Daemon,
    handle: &AgentHandle,
    invocation: &HookInvocation,
) -> Option<Scene> {
    let guard = handle.lock().await;
    let state = &guard.state;
    if state.is_held() {
        return None;
    }
    let conversation = invocation.conversation.or(state.tree.current())?;
    let cwd = run::work_dir(state.spec.cwd.as_deref(), daemon.layout.home());
    let sources = sources::of_agent(daemon, &state.spec, &cwd);
    let tasks = state
        .tasks
        .running()
        .map(|(id, task)| json!({"id": id, "tool": task.tool, "started_at": task.started_at}));
    let is_start = invocation.hook_input.event == HookEvent::SessionStart;
    let session_title = match (is_start, &state.spec.title) {
        (true, Some(title)) => Some(title.clone()),
        (true, None) => title::of(daemon, state, conversation).await,
        _ => None,
    };
    let turn = invocation.turn.or(state.turn.as_ref().map(|turn| turn.id));
    let setting = Setting {
        session_id: Some(conversation.to_string()),
        transcript_path: None,
        cwd: cwd.display().to_string(),
        permission_mode: Some(permission::mode(&state.spec.permissions).to_owned()),
        agent: Some((state.name.clone(), state.id.to_string())),
        generation: Some(state.generation()),
        turn: turn.map(|turn| turn.to_string()),
        op: invocation.op.map(|op| op.to_string()),
        session_title,
        background_tasks: tasks.collect(),
    };
    let env_file = is_start.then(|| daemon.layout.env_file(handle.id, conversation));
    let env = run::environment(
        invocation.hook_input.event,
        &guard.env,
        &state.spec.env,
        daemon.layout.home(),
        &setting,
        env_file.as_deref(),
    );
    Some(Scene {
        sources,
        conversation,
        setting,
        env,
        secrets: daemon.secrets_of(&guard),
        confined: sandbox::of_agent(daemon, handle.id, &state.spec, &guard.env, &cwd),
        cwd,
    })
}
