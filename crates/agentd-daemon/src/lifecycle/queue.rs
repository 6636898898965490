//! The prompts that wait for an agent: the user may edit, move and remove them until a turn takes them.

use super::ops::Asked;
use super::send::check_same;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::{Error, Kind, Result};
use crate::{id_prefix, prompt};
use agentd_client::api::{AgentRef, EditPrompt, MovePrompt, Queue, QueuedPrompt, RemovePrompts};
use agentd_core::event::{Body, Mode, Prompt, PromptEdited, PromptMoved, PromptsRemoved};
use agentd_core::hook::HookInvocation;
use agentd_core::id::{PromptId, Seq};
use agentd_core::message::{Attachment, Block};
use agentd_core::state::Queued;
use agentd_store::ReadQuery;

/// Prompts that one request may remove.
const MOST: usize = 1000;

/// The queue, with its texts. The agent is not locked: loading a window takes time in proportion to the conversation.
pub async fn list(handle: &AgentHandle) -> Result<Queue> {
    let loaded = handle.daemon.store.load(handle.id).await?;
    let waiting = loaded.state.inbox.waiting().enumerate();
    let prompts = waiting.map(|(index, queued)| {
        let blocks = loaded.window.pending(queued.prompt).unwrap_or_default();
        let attachments = blocks.iter().filter_map(Block::as_attachment);
        QueuedPrompt {
            prompt: queued.prompt,
            position: index + 1,
            mode: queued.mode,
            at: queued.at,
            edits: queued.edits,
            text: prompt::text_of(blocks),
            attachments: attachments.map(Attachment::info).collect(),
        }
    });
    Ok(Queue {
        agent: AgentRef {
            id: handle.id,
            name: Some(loaded.state.name.clone()),
        },
        prompts: prompts.collect(),
    })
}

/// Gives a queued prompt another text. Its id, its key, its place and its attachments stay.
pub async fn edit(handle: &AgentHandle, edit: EditPrompt, asked: &Asked) -> Result<Queue> {
    // Before the lock, like the list.
    let known = handle.daemon.store.load(handle.id).await?;
    let mut guard = handle.lock().await;
    if let Some(made) = asked.made(&guard.state)? {
        let made = made.seq;
        drop(guard);
        check_made(handle, made, &edit.text).await?;
        return list(handle).await;
    }
    guard.check_active()?;
    let mut blocks = prompt::text_blocks(&edit.text)?;
    let queued = changeable(&guard, &edit.prompt)?;
    let prompt = queued.prompt;
    let before = known.state.inbox.get(prompt);
    let is_unchanged = before.is_some_and(|it| (it.edits, it.seq) == (queued.edits, queued.seq));
    if !is_unchanged || edit.edits.is_some_and(|seen| seen != queued.edits) {
        let what = "the prompt was changed in the meantime";
        let next = format!("look at it again: `agentd queue {}`", guard.state.name);
        return Err(Error::new(Kind::Conflict, what).next(next));
    }
    let checked = HookInvocation::prompt_id(prompt, queued.edits);
    if !guard.state.at_rest && guard.state.hooks.get(checked).is_some() {
        // The verdict is for the old text, and the turn may already be beginning.
        let what = "hooks are checking the prompt, or have checked it";
        let error = Error::new(Kind::Conflict, what);
        return Err(error.next("remove it, and send another prompt"));
    }
    let attached = known.window.pending(prompt).unwrap_or_default().iter();
    blocks.extend(attached.filter(|it| it.as_attachment().is_some()).cloned());
    let bodies = [
        Body::from(PromptEdited { prompt }),
        Prompt { prompt, blocks }.into(),
    ];
    guard.note(bodies.into_iter().chain(asked.line())).await?;
    drop(guard);
    list(handle).await
}

/// Checks that an edit that is sent again with its op has the same text. The append is the edit, the text and the op.
async fn check_made(handle: &AgentHandle, op: Seq, text: &str) -> Result<()> {
    let edited = Seq(op.0.saturating_sub(2));
    let before = Seq(edited.0.saturating_sub(1));
    let query = ReadQuery::all(handle.id, before, 1);
    let page = handle.daemon.store.read(query).await?;
    match page.events.first().map(|event| &event.body) {
        Some(Body::PromptEdited(body)) => {
            let same = |blocks: &[Block]| prompt::text_of(blocks) == text;
            check_same(&handle.daemon, handle.id, (body.prompt, edited), same, "op").await
        }
        _ => Ok(()),
    }
}

/// Moves a queued prompt in front of another one, or to one of the ends.
pub async fn move_prompt(handle: &AgentHandle, order: MovePrompt, asked: &Asked) -> Result<Queue> {
    let mut guard = handle.lock().await;
    if !asked.is_made(&guard.state)? {
        guard.check_active()?;
        let prompt = queued(&guard, &order.prompt)?.prompt;
        let first = guard.state.inbox.waiting().next();
        let before = match &order.before {
            Some(_) if order.first => {
                let what = "a prompt is moved to the beginning or before another one, not both";
                return Err(Error::new(Kind::Invalid, what));
            }
            Some(before) => Some(queued(&guard, before)?.prompt),
            None if order.first => first.map(|first| first.prompt),
            None => None,
        };
        if before == Some(prompt) && !order.first {
            let what = "a prompt cannot be moved before itself";
            return Err(Error::new(Kind::Invalid, what));
        }
        let moved = (before != Some(prompt)).then(|| PromptMoved { prompt, before }.into());
        let bodies: Vec<Body> = moved.into_iter().chain(asked.line()).collect();
        if !bodies.is_empty() {
            guard.note(bodies).await?;
        }
    }
    drop(guard);
    list(handle).await
}

/// Removes queued prompts: all that are named, or none.
pub async fn remove(handle: &AgentHandle, remove: RemovePrompts, asked: &Asked) -> Result<Queue> {
    let mut guard = handle.lock().await;
    if !asked.is_made(&guard.state)? {
        guard.check_active()?;
        if guard.state.mode == Mode::Oneshot {
            let what = "the prompt of a one-shot agent cannot be removed";
            let next = format!("end the agent: `agentd rm {}`", guard.state.name);
            return Err(Error::new(Kind::Refused, what).next(next));
        }
        if remove.prompts.is_empty() || remove.prompts.len() > MOST {
            let what = format!("a request removes 1 to {MOST} prompts");
            return Err(Error::new(Kind::Invalid, what));
        }
        let mut prompts = Vec::new();
        for named in &remove.prompts {
            let prompt = changeable(&guard, named)?.prompt;
            if !prompts.contains(&prompt) {
                prompts.push(prompt);
            }
        }
        let bodies = [Body::from(PromptsRemoved { prompts })].into_iter();
        guard.note(bodies.chain(asked.line())).await?;
        // A subagent whose task was removed reports to its parent.
        guard.reconcile();
    }
    drop(guard);
    list(handle).await
}

/// The queued prompt with this id or beginning of an id.
fn queued<'a>(guard: &'a AgentGuard<'_>, given: &str) -> Result<&'a Queued> {
    let prefix = id_prefix::parse(given, "prompt")?;
    let inbox = &guard.state.inbox;
    let waiting = inbox.waiting().map(|queued| queued.prompt);
    let found: Option<PromptId> = id_prefix::only(&prefix, "prompt", waiting)?;
    found.and_then(|prompt| inbox.get(prompt)).ok_or_else(|| {
        let error = Error::new(Kind::NotFound, format!("no prompt {prefix} is queued"));
        let error = error.because("it was answered, removed or never sent, or its turn has begun");
        error.next(format!("agentd queue {}", guard.state.name))
    })
}

/// The same, if the user may change or remove it. The agent waits for the reports of its subagents.
fn changeable<'a>(guard: &'a AgentGuard<'_>, given: &str) -> Result<&'a Queued> {
    let queued = queued(guard, given)?;
    if guard.state.children.is_report(queued.prompt) {
        let what = format!("prompt {} is the report of a subagent", queued.prompt);
        return Err(Error::new(Kind::Refused, what).next("it can be moved"));
    }
    Ok(queued)
}
