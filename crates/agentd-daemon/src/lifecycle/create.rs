//! A new agent, and its first prompt with it.

use crate::clock;
use crate::daemon::Daemon;
use crate::hooks::session;
use crate::lifecycle::send;
use crate::problem::Result;
use agentd_client::api::Create;
use agentd_client::{Kind, Problem};
use agentd_core::begin;
use agentd_core::event::{Kind as EventKind, Mode, PromptMode};
use agentd_core::id::{AgentId, ConversationId, PromptId};
use agentd_core::spec::{AgentSpec, Runtime};
use std::sync::Arc;

/// What a name may be long.
const LONGEST: usize = 64;

pub async fn create(daemon: &Arc<Daemon>, create: Create) -> Result<(AgentId, Option<PromptId>)> {
    let id = AgentId::new(clock::new_id());
    let mode = create.mode.unwrap_or(match create.name {
        Some(_) => Mode::Persistent,
        None => Mode::Oneshot,
    });
    let name = match create.name {
        Some(name) => name,
        None => own_name(id),
    };
    check_name(&name)?;
    check_spec(&create.spec)?;
    let conversation = ConversationId::new(clock::new_id());
    let mut lines = begin::create(&name, mode, &create.spec, conversation);
    let prompt = create
        .prompt
        .as_ref()
        .map(|_| PromptId::new(clock::new_id()));
    if let (Some(prompt), Some(text)) = (prompt, create.prompt) {
        let bodies = send::bodies(prompt, &text, None, PromptMode::Queue)?;
        lines.extend(bodies.map(|body| (conversation, body)));
    }
    daemon.bring(id, &create.env);
    let desk = daemon.new_desk(id).await;
    let mut guard = desk.lock().await;
    let events = match guard.append(lines).await {
        Ok(events) => events,
        Err(problem) => {
            drop(guard);
            daemon.forget(id).await;
            return Err(problem);
        }
    };
    let accepted = events
        .iter()
        .find(|event| event.kind() == EventKind::PromptQueued);
    if let (Some(prompt), Some(accepted)) = (prompt, accepted) {
        daemon.remember(prompt, accepted.seq);
    }
    session::begins(daemon, &desk, &mut guard, "startup", None);
    daemon.mind(&desk, &mut guard);
    Ok((id, prompt))
}

/// A one-shot agent is called after the end of its id.
fn own_name(id: AgentId) -> String {
    let id = id.to_string();
    let end = id.rsplit('-').next().unwrap_or_default();
    format!("run-{end}")
}

/// One canonical form: what can be typed and is the same on every screen.
pub fn check_name(name: &str) -> Result<()> {
    let is_good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    let begins_well = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    if name.len() <= LONGEST && begins_well && name.chars().all(is_good) {
        // An id is always an id.
        if name.parse::<AgentId>().is_err() {
            return Ok(());
        }
    }
    let what = format!("`{name}` cannot be a name");
    Err(Problem::new(Kind::Invalid, what).because(format_args!(
        "a name has up to {LONGEST} of a–z, 0–9, `-`, `_` and `.`, and begins with a letter or a digit"
    )))
}

pub fn check_spec(spec: &AgentSpec) -> Result<()> {
    let bad = |what: String| Problem::new(Kind::Invalid, what);
    spec.validate()
        .map_err(|problem| bad("the spec cannot be used".to_owned()).because(problem))?;
    if spec.runtime != Runtime::Native {
        return Err(bad("only agents of `runtime: native` can be run".to_owned()));
    }
    Ok(())
}
