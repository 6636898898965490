//! SessionStart and SessionEnd hooks. The context from SessionStart hooks is at the beginning of a conversation.

use super::has_any;
use crate::agent_handle::{AgentGuard, AgentHandle};
use crate::clock;
use crate::daemon::Daemon;
use crate::lifecycle::send;
use crate::spawn::spawn;
use agentd_core::event::{BeginSource, Body, Notice, NoticeCause, PromptMode};
use agentd_core::hook::{HookEvent, HookInput, HookInvocation, Verdict};
use agentd_core::id::{AgentId, ConversationId, Incarnation, InvocationId, PromptId, Seq};
use agentd_core::state::{InvocationState, Run};
use std::sync::Arc;

/// The first conversation of a new agent or fork: no process is started before the hooks have ended.
pub fn begins(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    guard: &mut AgentGuard<'_>,
    source: &str,
    parent: Option<ConversationId>,
) {
    let Some(conversation) = guard.state.tree.current() else {
        return;
    };
    guard.is_opened = true;
    let hook_input = start(guard, source, parent);
    open(
        daemon,
        handle,
        guard,
        HookInvocation::of_conversation(conversation, hook_input),
    );
}

/// The same for an agent that an earlier daemon created before it died without recording that the hooks started. If a
/// process has ever run the agent, they had run.
pub fn begins_late(daemon: &Arc<Daemon>, handle: &Arc<AgentHandle>, guard: &mut AgentGuard<'_>) {
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
        // They are being adopted.
        guard.is_opened = true;
        return;
    }
    begins(
        daemon,
        handle,
        guard,
        source,
        from.map(|from| from.conversation),
    );
}

/// The agent is started or restarted and continues its conversation. `at` is the event that started it.
pub fn resumes(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    guard: &mut AgentGuard<'_>,
    at: Option<Seq>,
) {
    let hook_input = start(guard, "resume", None);
    let id = match at {
        Some(at) => {
            let parts = [handle.id.as_bytes().as_slice(), &at.0.to_le_bytes()];
            InvocationId::of(HookEvent::SessionStart, &parts)
        }
        None => InvocationId::new(clock::new_id()),
    };
    open(daemon, handle, guard, HookInvocation::new(id, hook_input));
}

fn start(guard: &AgentGuard<'_>, source: &str, parent: Option<ConversationId>) -> HookInput {
    let model = guard.state.spec.model.as_deref();
    HookInput::session_start(source, model, parent.map(|parent| parent.to_string()))
}

/// Holds the agent until the hooks have ended, if there are any.
fn open(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    guard: &mut AgentGuard<'_>,
    invocation: HookInvocation,
) {
    if has_any(daemon, guard, &invocation) {
        hold(daemon, handle, guard, invocation);
    }
}

/// Starts no process before these hooks have ended, so that their context comes before the first request.
pub fn hold(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    guard: &mut AgentGuard<'_>,
    invocation: HookInvocation,
) {
    guard.awaiting_hooks += 1;
    let (daemon, handle) = (Arc::clone(daemon), Arc::clone(handle));
    spawn("SessionStart hooks", async move {
        // Their output is in the commit with the end of the last of them.
        drop(daemon.invoke(&handle, invocation).await);
        let mut guard = handle.lock().await;
        guard.awaiting_hooks -= 1;
        guard.changed();
        daemon.reconcile(&handle, &mut guard);
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
pub async fn opening(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    invocation: HookInvocation,
) -> Vec<Body> {
    let verdict = daemon.invoke(handle, invocation).await;
    words(handle.id, verdict)
}

/// A verdict as the events that are appended: its context and its initial prompt.
pub fn words(agent: AgentId, verdict: Verdict) -> Vec<Body> {
    let mut bodies = Vec::new();
    let cause = NoticeCause::Hook;
    bodies.extend(verdict.context.map(|text| Notice { cause, text }.into()));
    if let Some(text) = verdict.initial_prompt {
        let prompt = PromptId::new(clock::new_id());
        match send::bodies(prompt, &text, None, PromptMode::Queue) {
            Ok(prompt) => bodies.extend(prompt),
            Err(problem) => {
                tracing::warn!(%agent, %problem, "initial prompt of a hook rejected");
            }
        }
    }
    bodies
}

/// Invokes SessionEnd hooks and waits for them with a timeout.
pub async fn ends(daemon: &Arc<Daemon>, handle: &Arc<AgentHandle>, reason: &str, at: Seq) {
    let parts = [handle.id.as_bytes().as_slice(), &at.0.to_le_bytes()];
    let id = InvocationId::of(HookEvent::SessionEnd, &parts);
    let invocation = HookInvocation::new(id, HookInput::session_end(reason, None));
    let _late = daemon
        .invoke_within(handle, invocation, daemon.session_end_wait)
        .await;
}
