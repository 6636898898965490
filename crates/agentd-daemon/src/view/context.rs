//! What the model is given.

use crate::daemon::AgentHandle;
use crate::error::Result;
use agentd_client::api::{AgentRef, ModelContext};
use agentd_core::request;

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
    }
    Ok(shown)
}
