//! Accepts prompts. A prompt is on disk before it is acknowledged, and a prompt with a key is accepted once.

use crate::agent_handle::{AgentGuard, AgentHandle};
use crate::clock;
use crate::daemon::Daemon;
use crate::problem::{Result, of_store};
use agentd_client::api::{AgentRef, Send, Sent};
use agentd_client::{Kind, Problem};
use agentd_core::event::{Body, Mode, Prompt, PromptMode, PromptQueued};
use agentd_core::id::{AgentId, PromptId, Seq};
use agentd_core::message::Block;
use agentd_failpoint as failpoint;
use agentd_store::ReadQuery;
use std::sync::Arc;

/// The longest prompt, in bytes.
const LONGEST: usize = 1024 * 1024;
const LONGEST_KEY: usize = 256;
/// Events after the one that accepted a prompt in which its text is searched for.
const NEAR: usize = 8;

pub async fn send(daemon: &Arc<Daemon>, handle: &Arc<AgentHandle>, send: Send) -> Result<Sent> {
    let mut guard = handle.lock().await;
    let known = send
        .key
        .as_ref()
        .and_then(|key| guard.state.inbox.by_key(key));
    if let Some((prompt, seq)) = known {
        let (agent, phase) = (of(handle, &guard), guard.state.phase());
        drop(guard);
        check_text(daemon, handle.id, (prompt, seq), &send.text, "key").await?;
        daemon.remember(prompt, seq);
        return Ok(Sent {
            agent,
            prompt,
            phase,
            repeated: true,
            seq,
        });
    }
    if guard.state.archived {
        let what = format!("`{}` is archived", guard.state.name);
        let next = format!("agentd restore {}", guard.state.id);
        return Err(Problem::new(Kind::Refused, what).next(next));
    }
    if guard.state.mode == Mode::Oneshot {
        let what = "a one-shot agent takes one prompt";
        return Err(Problem::new(Kind::Refused, what).next("create a persistent agent"));
    }
    let most = guard.state.spec.limits.max_queue as usize;
    if guard.state.inbox.waiting().len() >= most {
        let what = format!("{most} prompts are queued already (limits.max_queue)");
        let problem = Problem::new(Kind::TooLarge, what);
        return Err(problem.next("send it again when some are answered, or raise the limit"));
    }
    let prompt = PromptId::new(clock::new_id());
    let bodies = bodies(prompt, &send.text, send.key, send.mode)?;
    daemon.merge_env(&mut guard, &send.env);
    let events = guard.note(bodies).await?;
    // It is durable before it is acknowledged.
    failpoint::hit("at", "barrier.1");
    let seq = events.first().map(|event| event.seq).unwrap_or_default();
    daemon.remember(prompt, seq);
    daemon.reconcile(handle, &mut guard);
    Ok(Sent {
        agent: of(handle, &guard),
        prompt,
        phase: guard.state.phase(),
        repeated: false,
        seq,
    })
}

fn of(handle: &AgentHandle, guard: &AgentGuard<'_>) -> AgentRef {
    AgentRef {
        id: handle.id,
        name: Some(guard.state.name.clone()),
    }
}

/// Checks that a prompt that is sent again with its key or op has the text that was accepted. A purged prompt is not
/// compared.
pub async fn check_text(
    daemon: &Daemon,
    agent: AgentId,
    (prompt, seq): (PromptId, Seq),
    text: &str,
    what: &str,
) -> Result<()> {
    let after = Seq(seq.0.saturating_sub(1));
    let page = daemon.store.read(ReadQuery::all(agent, after, NEAR)).await;
    let page = page.map_err(|error| of_store(&error))?;
    let accepted = page.events.iter().find_map(|event| match &event.body {
        Body::Prompt(accepted) if accepted.prompt == prompt => Some(&accepted.blocks),
        _ => None,
    });
    if accepted.is_none_or(|blocks| *blocks == [Block::text(text)]) {
        return Ok(());
    }
    let problem = format!("this {what} was used with another prompt, {prompt}");
    Err(Problem::new(Kind::Conflict, problem)
        .next(format!("omit it, or use another {what} for each prompt")))
}

/// The events of a prompt.
pub fn bodies(
    prompt: PromptId,
    text: &str,
    key: Option<String>,
    mode: PromptMode,
) -> Result<impl Iterator<Item = Body>> {
    if text.trim().is_empty() {
        return Err(Problem::new(Kind::Invalid, "the prompt is empty"));
    }
    if text.len() > LONGEST {
        let what = format!(
            "the prompt has {} bytes; the limit is {LONGEST}",
            text.len()
        );
        return Err(Problem::new(Kind::TooLarge, what).next("put it in a file and name the file"));
    }
    if key.as_ref().is_some_and(|key| key.len() > LONGEST_KEY) {
        let what = format!("an idempotency key may have at most {LONGEST_KEY} bytes");
        return Err(Problem::new(Kind::TooLarge, what));
    }
    let queued = PromptQueued { prompt, key, mode };
    let blocks = vec![Block::text(text)];
    let bodies: [Body; 2] = [queued.into(), Prompt { prompt, blocks }.into()];
    Ok(bodies.into_iter())
}
