//! The steps of a reset that invoke hooks: PreReset, SessionEnd and SessionStart, each once.

use super::{step_done, withdraw};
use crate::daemon::AgentHandle;
use crate::error::Result;
pub use crate::hooks::record::reason;
use crate::hooks::session;
use agentd_core::event::{Body, ResetRefusal, ResetStep, ResetTo};
use agentd_core::hook::{HookInput, HookInvocation};
use agentd_core::id::Seq;
use agentd_core::reset;
use agentd_core::state::Reset;
use agentd_store::ReadQuery;

pub async fn step(handle: &AgentHandle, step: ResetStep) -> Result<()> {
    let (under_way, target, model) = {
        let guard = handle.lock().await;
        let under_way = guard.state.resets.under_way().cloned();
        let target = reset::target(&guard.state);
        (under_way, target, guard.state.spec.model.clone())
    };
    let Some(under_way) = under_way else {
        return Ok(());
    };
    let order = &under_way.order;
    let source = reset::source(order.to);
    let of_op = |hook_input| HookInvocation::of_op(handle.id, order.op, hook_input);
    match step {
        ResetStep::PreReset if order.skip_hooks => {}
        ResetStep::PreReset => {
            let reason = reason_given(handle, &under_way).await;
            let invocation = of_op(HookInput::pre_reset(
                source,
                order.source,
                reason.as_deref(),
            ));
            let verdict = handle.invoke(invocation).await;
            if verdict.is_no() || verdict.stop.is_some() {
                return withdraw(handle, ResetRefusal::Hook).await;
            }
        }
        ResetStep::SessionEnd => {
            let next = target.map(|target| target.to_string());
            let invocation = HookInvocation {
                conversation: Some(under_way.old),
                ..of_op(HookInput::session_end(source, next))
            };
            let wait = handle.daemon.settings().session_end_wait;
            let _late = handle.invoke_within(invocation, wait).await;
        }
        ResetStep::SessionStart => {
            let parent = Some(under_way.old.to_string());
            let source = match order.to {
                ResetTo::Fresh => "clear",
                ResetTo::Rewind { .. } => "fork",
                // The target conversation began earlier, and already contains the context from its hooks.
                ResetTo::Undo | ResetTo::Redo => {
                    return step_done(&mut handle.lock().await, step).await;
                }
            };
            let invocation = of_op(HookInput::session_start(source, model.as_deref(), parent));
            let bodies = session::opening(handle, invocation).await;
            return opened(handle, bodies).await;
        }
        ResetStep::Stop | ResetStep::Switch => {}
    }
    step_done(&mut handle.lock().await, step).await
}

/// Commits the output of the hooks together with the step.
async fn opened(handle: &AgentHandle, bodies: Vec<Body>) -> Result<()> {
    let mut guard = handle.lock().await;
    let Some(current) = guard.state.tree.current() else {
        return Ok(());
    };
    let mut lines: Vec<_> = bodies.into_iter().map(|body| (current, body)).collect();
    lines.extend(reset::stepped(&guard.state, ResetStep::SessionStart));
    guard.append(lines).await.map(drop)
}

/// The reason that was given for the reset: the note right after its first event.
async fn reason_given(handle: &AgentHandle, under_way: &Reset) -> Option<String> {
    let query = ReadQuery::all(handle.id, Seq(under_way.began.0), 1);
    let page = handle.daemon.store.read(query).await.ok()?;
    page.events.into_iter().find_map(|event| match event.body {
        Body::Note(note) => Some(note.text),
        _ => None,
    })
}
