//! SessionStart and SessionEnd hooks. The context that SessionStart hooks return is added before the first request.

use super::has_any;
use crate::clock;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::prompt;
use crate::spawn::spawn;
use agentd_core::event::{BeginSource, Body, Notice, NoticeCause, PromptMode};
use agentd_core::hook::{HookEvent, HookInput, HookInvocation, Verdict};
use agentd_core::id::{AgentId, ConversationId, Incarnation, InvocationId, PromptId, Seq};
use agentd_core::state::{InvocationState, Run};

/// Invokes SessionStart hooks for the first conversation of a new agent or fork. No process is started before they have
/// ended.
pub async fn begins(guard: &mut AgentGuard<'_>, source: &str, parent: Option<ConversationId>) {
    let Some(conversation) = guard.state.tree.current() else {
        return;
    };
    guard.is_opened = true;
    let hook_input = start(guard, source, parent);
    let invocation = HookInvocation::of_conversation(conversation, hook_input);
    open(guard, invocation).await;
}

/// The same for an agent whose daemon died after it created the agent and before it recorded the start of the hooks. An
/// agent that has had a process is skipped: its hooks had ended before the process was started.
pub fn begins_late(guard: &mut AgentGuard<'_>) {
    if guard.is_opened || guard.state.incarnation != Incarnation::default() {
        return;
    }
    let Some(current) = guard.state.tree.current_conversation() else {
        return;
    };
    let (id, from) = (current.id, current.from);
    let source = match current.source {
        BeginSource::Create => "startup",
        BeginSource::Fork => "fork",
        BeginSource::Reset | BeginSource::Rewind | BeginSource::Import => return,
    };
    let told = InvocationId::of(HookEvent::SessionStart, &[id.as_bytes()]);
    if guard.state.hooks.get(told).is_some() {
        // An earlier daemon started them: if they are still running, they are adopted.
        guard.is_opened = true;
        return;
    }
    guard.is_opened = true;
    let hook_input = start(guard, source, from.map(|from| from.conversation));
    // `open` would read the hooks files first, but this function must not block.
    hold(guard, HookInvocation::of_conversation(id, hook_input));
}

/// Invokes SessionStart hooks for an agent that is started or restarted and continues its conversation. `at` is the
/// event that started it, if there is one.
pub async fn resumes(guard: &mut AgentGuard<'_>, at: Option<Seq>) {
    let hook_input = start(guard, "resume", None);
    let id = match at {
        Some(at) => {
            let parts = [guard.handle.id.as_bytes().as_slice(), &at.0.to_le_bytes()];
            InvocationId::of(HookEvent::SessionStart, &parts)
        }
        None => InvocationId::new(clock::new_id()),
    };
    open(guard, HookInvocation::new(id, hook_input)).await;
}

fn start(guard: &AgentGuard<'_>, source: &str, parent: Option<ConversationId>) -> HookInput {
    let model = guard.state.spec.model.as_deref();
    HookInput::session_start(source, model, parent.map(|parent| parent.to_string()))
}

/// Invokes the hooks and holds the agent until they have ended, if there are any.
async fn open(guard: &mut AgentGuard<'_>, invocation: HookInvocation) {
    if has_any(guard, &invocation).await {
        hold(guard, invocation);
    }
}

/// Invokes the hooks. No process is started before they have ended, so that their context comes before the first
/// request.
pub fn hold(guard: &mut AgentGuard<'_>, invocation: HookInvocation) {
    guard.awaiting_hooks += 1;
    let handle = guard.handle.clone();
    spawn("SessionStart hooks", async move {
        // The verdict is not used: the commit that records the end of the last hook also contains their output.
        drop(handle.invoke(invocation).await);
        let mut guard = handle.lock().await;
        guard.awaiting_hooks -= 1;
        guard.changed();
        guard.reconcile();
    });
}

/// Whether the end of this run completes the SessionStart hooks of a conversation, so that their output is committed
/// with it. A reset, and a turn that continues after a compaction, commit the output themselves.
pub fn is_opened_by(invoked: &InvocationState, last: &Run) -> bool {
    let is_own = invoked.event == HookEvent::SessionStart && invoked.turn.is_none();
    let hook = last.started.hook;
    let mut others = invoked.runs.iter().filter(|run| run.started.hook != hook);
    let all_spoke = others.all(|run| run.started.is_async || run.ended.is_some());
    is_own && last.started.op.is_none() && !last.started.is_async && all_spoke
}

/// Invokes the SessionStart hooks of a reset and returns what they add to the new conversation.
pub async fn opening(handle: &AgentHandle, invocation: HookInvocation) -> Vec<Body> {
    let verdict = handle.invoke(invocation).await;
    words(handle.id, verdict)
}

/// A verdict as the events that are appended: its context and its initial prompt.
pub fn words(agent: AgentId, verdict: Verdict) -> Vec<Body> {
    let mut bodies = Vec::new();
    let cause = NoticeCause::Hook;
    bodies.extend(verdict.context.map(|text| Notice { cause, text }.into()));
    if let Some(text) = verdict.initial_prompt {
        let prompt = PromptId::new(clock::new_id());
        let bodies_of = |blocks| prompt::bodies(prompt, blocks, None, PromptMode::Queue);
        match prompt::text_blocks(&text).and_then(bodies_of) {
            Ok(prompt) => bodies.extend(prompt),
            Err(error) => {
                tracing::warn!(%agent, %error, "initial prompt of a hook rejected");
            }
        }
    }
    bodies
}

/// Invokes SessionEnd hooks and waits for them with a timeout.
pub async fn ends(handle: &AgentHandle, reason: &str, at: Seq) {
    let parts = [handle.id.as_bytes().as_slice(), &at.0.to_le_bytes()];
    let id = InvocationId::of(HookEvent::SessionEnd, &parts);
    let invocation = HookInvocation::new(id, HookInput::session_end(reason, None));
    let wait = handle.daemon.settings().session_end_wait;
    let _late = handle.invoke_within(invocation, wait).await;
}
