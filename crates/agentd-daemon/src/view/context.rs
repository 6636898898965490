//! What the model is given.

use crate::daemon::AgentHandle;
use crate::error::Result;
use crate::project::skills;
use crate::spawn::blocking;
use agentd_client::api::{AgentRef, ModelContext};
use agentd_core::event::KnownSkill;
use agentd_core::request;
use agentd_core::spec::AgentSpec;
use std::path::PathBuf;

pub async fn context(handle: &AgentHandle) -> Result<ModelContext> {
    let loaded = handle.daemon.store.load(handle.id).await?;
    let parts = request::parts(&loaded.window);
    let context = loaded.window.context().cloned();
    let mut shown = ModelContext {
        agent: AgentRef {
            id: handle.id,
            name: Some(loaded.state.name.clone()),
        },
        conversation: loaded.state.tree.current(),
        provider: None,
        model: None,
        tokens: parts.iter().map(|part| part.tokens).sum(),
        parts,
        instructions: Vec::new(),
        skills: Vec::new(),
        system: String::new(),
        tools: Vec::new(),
    };
    if let Some(context) = context {
        shown.provider = Some(context.provider);
        shown.model = Some(context.model);
        if let Some(kept) = context.kept {
            let applies = |path: &str| !loaded.window.was_told_to_ignore(path);
            shown.instructions = kept.files;
            shown.instructions.retain(|file| applies(&file.path));
            shown.skills = kept.skills;
            shown.skills.retain(|skill| applies(&skill.path));
        }
        shown.system = context.system;
        shown.tools = context.tools;
    } else {
        shown.skills = skills(handle, &loaded.state.spec).await;
    }
    Ok(shown)
}

/// The skills that the first request of a new conversation will name.
async fn skills(handle: &AgentHandle, spec: &AgentSpec) -> Vec<KnownSkill> {
    if spec.is_outer() || !spec.instructions {
        return Vec::new();
    }
    let home = handle.lock().await.env.get("HOME").map(PathBuf::from);
    let cwd = PathBuf::from(spec.cwd.clone().unwrap_or_default());
    let layout = handle.daemon.layout.clone();
    let found = blocking(move || skills::of(&layout, &cwd, home.as_deref())).await;
    let known = found.skills.into_iter().map(|skill| KnownSkill {
        name: skill.name,
        path: skill.path,
    });
    known.collect()
}
