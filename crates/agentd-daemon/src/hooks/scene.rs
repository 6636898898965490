//! The state of an agent from which the input and environment of its hooks are built.

use super::{run, sandbox};
use crate::confine;
use crate::daemon::AgentHandle;
use crate::title;
use agentd_client::api::Env;
use agentd_core::hook::{HookEvent, HookInvocation, Setting};
use agentd_core::id::ConversationId;
use agentd_core::permission;
use agentd_core::secrets::Secrets;
use agentd_core::spec::AgentSpec;
use agentd_process::task::Confined;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// Copied under the agent's lock, so that the lock is not held while the hooks run.
pub(super) struct Scene {
    pub conversation: ConversationId,
    pub setting: Setting,
    pub spec: Box<AgentSpec>,
    pub secrets: Secrets,
    event: HookEvent,
    callers: Arc<Env>,
    /// Set by [`Self::enter`].
    pub cwd: PathBuf,
    /// The environment of the hooks. Set by [`Self::enter`].
    pub env: BTreeMap<String, String>,
    /// The sandbox of the hooks that are not the user's own. Set by [`Self::enter`].
    pub confined: Result<Option<Confined>, String>,
    /// The variables that hooks in that sandbox do not get. Set by [`Self::enter`].
    pub unusable: BTreeSet<String>,
}

/// None if no hook may run for the agent.
pub(super) async fn scene(handle: &AgentHandle, invocation: &HookInvocation) -> Option<Scene> {
    let guard = handle.lock().await;
    let state = &guard.state;
    if state.is_held() {
        return None;
    }
    let conversation = invocation.conversation.or(state.tree.current())?;
    let tasks = state
        .tasks
        .running()
        .map(|(id, task)| json!({"id": id, "tool": task.tool, "started_at": task.started_at}));
    let event = invocation.hook_input.event;
    let is_start = event == HookEvent::SessionStart;
    let session_title = match (is_start, &state.spec.title) {
        (true, Some(title)) => Some(title.clone()),
        (true, None) => title::of(&handle.daemon, state, conversation).await,
        _ => None,
    };
    let turn = invocation.turn.or(state.turn.as_ref().map(|turn| turn.id));
    let setting = Setting {
        session_id: Some(conversation.to_string()),
        transcript_path: None,
        cwd: String::new(),
        permission_mode: Some(permission::mode(&state.spec.permissions).to_owned()),
        agent: Some((state.name.clone(), state.id.to_string())),
        generation: Some(state.generation()),
        turn: turn.map(|turn| turn.to_string()),
        op: invocation.op.map(|op| op.to_string()),
        session_title,
        background_tasks: tasks.collect(),
    };
    Some(Scene {
        conversation,
        setting,
        spec: state.spec.clone(),
        secrets: guard.secrets(),
        event,
        callers: Arc::clone(&guard.env),
        cwd: PathBuf::new(),
        env: BTreeMap::new(),
        confined: Ok(None),
        unusable: BTreeSet::new(),
    })
}

impl Scene {
    /// Prepares the directory, the environment and the sandbox of the hooks. Blocks.
    pub fn enter(&mut self, handle: &AgentHandle, cwd: PathBuf) {
        let layout = &handle.daemon.layout;
        self.setting.cwd = cwd.display().to_string();
        let is_start = self.event == HookEvent::SessionStart;
        let env_file = is_start.then(|| layout.env_file(handle.id, self.conversation));
        self.env = run::environment(
            self.event,
            &self.callers,
            &self.spec.env,
            layout.home(),
            &self.setting,
            env_file.as_deref(),
        );
        let daemon = &handle.daemon;
        self.confined = sandbox::of_agent(daemon, handle.id, &self.spec, &self.callers, &cwd);
        if let Ok(Some(confined)) = &self.confined {
            let is_named = |name: &str| self.spec.env.contains_key(name);
            self.unusable = confine::unusable(&self.env, is_named, confined);
        }
        self.cwd = cwd;
    }
}
