//! A runtime's questions to the daemon: about its subagents, and about what hooks decide.

use super::Side;
use crate::daemon::AgentHandle;
use crate::lifecycle;
use agentd_core::hook::HookInvocation;
use agentd_core::id::Incarnation;
use agentd_core::link::{Asked, Down, Question, Refusal};
use tokio::sync::mpsc;

/// Answers a question, in a task of its own. The answer belongs to this connection: on another connection the runtime
/// asks again. False if the incarnation does not run the agent any more.
pub(super) async fn answer(handle: &AgentHandle, asked: Asked, side: &Side) -> bool {
    if !handle.lock().await.link.may_write(asked.incarnation) {
        return false;
    }
    let (handle, down) = (handle.clone(), side.down.clone());
    side.spawn("runtime question", async move {
        let n = asked.n;
        let only_waits = matches!(asked.question, Question::Await { .. });
        let answer = lifecycle::subagents::answer(&handle, asked.question);
        let answer = tokio::select! {
            answer = answer => answer,
            // A question that changes something is completed even if the connection closes.
            () = down.closed(), if only_waits => None,
        };
        if let Some(answer) = answer {
            let _broken = down.send(Down::Answer { n, answer });
        }
    });
    true
}

/// Invokes hooks for a runtime. False if the incarnation does not run the agent any more: the new one invokes them, and
/// they must not run twice.
pub(super) async fn invoke_hooks(
    handle: &AgentHandle,
    incarnation: Incarnation,
    invocation: HookInvocation,
    side: &Side,
) -> bool {
    if !handle.lock().await.link.may_write(incarnation) {
        let why = Refusal::Stale;
        let _gone = side.down.send(Down::Refused { why });
        return false;
    }
    let (handle, down) = (handle.clone(), side.down.clone());
    side.spawn("runtime hooks", tell(handle, invocation, down));
    true
}

/// A runtime that asks again after its connection broke gets the same answer.
async fn tell(handle: AgentHandle, invocation: HookInvocation, down: mpsc::UnboundedSender<Down>) {
    let id = invocation.id;
    let verdict = handle.invoke(invocation).await;
    // Under the lock: events that were committed before are sent before the verdict.
    let _guard = handle.lock().await;
    let _broken = down.send(Down::HooksAnswered { id, verdict });
}
