//! Reports the end of a subagent to its parent, once.

use crate::answer;
use crate::clock;
use crate::daemon::{AgentHandle, Daemon};
use crate::error::{Kind, Result};
use agentd_core::event::{Body, ParentTold, SpecSet, SubagentOutcome};
use agentd_core::hook::{HookInput, HookInvocation};
use agentd_core::id::{AgentId, InvocationId, PromptId};
use agentd_core::state::ParentLink;
use agentd_core::subagents::{self, Report};
use agentd_failpoint as failpoint;
use std::sync::Arc;
use std::time::Duration;

/// Delay before a report that could not be written is tried again.
pub const AGAIN: Duration = Duration::from_secs(1);

/// The answer of a subagent, and its error. If the journal cannot be read now, the answer is not lost: try again.
pub async fn last_words(handle: &AgentHandle) -> Result<(String, Option<String>)> {
    let prompt = {
        let guard = handle.lock().await;
        guard
            .state
            .parent_link
            .as_ref()
            .map(|parent_link| parent_link.prompt)
    };
    let Some(prompt) = prompt else {
        return Ok(Default::default());
    };
    match answer::answer(handle, prompt, Duration::ZERO).await {
        Ok(answer) => Ok((answer.text, answer.error)),
        Err(error) if error.kind == Kind::Unavailable => Err(error),
        // Its text was purged, or the journal is damaged.
        Err(_) => Ok(Default::default()),
    }
}

/// A subagent is being archived: its parent is told first.
pub async fn deleted(handle: &AgentHandle) -> Result<()> {
    let parent_link = handle.lock().await.state.parent_link.clone();
    match parent_link {
        Some(parent_link) if parent_link.outcome.is_none() => {
            let report = report_of(handle, SubagentOutcome::Deleted).await?;
            tell(&handle.daemon, handle.id, &parent_link, &report).await?;
            invoke_stop_hooks(handle, &report).await;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Reports the end of a subagent to its parent, and tries again until that is recorded.
pub async fn report(handle: AgentHandle) {
    while let Err(error) = try_report(&handle).await {
        tracing::error!(agent = %handle.id, %error, "end of subagent not reported to its parent");
        if handle.daemon.is_ending() {
            break;
        }
        // tidy: polls until the journal can be written again
        tokio::time::sleep(AGAIN).await;
    }
    let mut guard = handle.lock().await;
    guard.reporting = false;
    guard.reconcile();
}

async fn try_report(handle: &AgentHandle) -> Result<()> {
    let parent_link = {
        let guard = handle.lock().await;
        let parent_link = guard.state.parent_link.clone();
        parent_link.filter(|_| guard.state.owes_report())
    };
    let Some(parent_link) = parent_link else {
        return Ok(());
    };
    if let Some(outcome) = parent_link.outcome {
        let report = report_of(handle, outcome).await?;
        tell(&handle.daemon, handle.id, &parent_link, &report).await?;
        invoke_stop_hooks(handle, &report).await;
    }
    handle.lock().await.note([ParentTold {}.into()]).await?;
    Ok(())
}

/// Invokes SubagentStop hooks for a subagent that did not complete; for one that completed they ran before its turn
/// ended. Once per subagent: for an archived subagent they do not run again when its turn ends.
async fn invoke_stop_hooks(handle: &AgentHandle, report: &Report) {
    if report.outcome == SubagentOutcome::Completed {
        return;
    }
    let name = handle.lock().await.state.name.clone();
    let outcome = serde_json::to_value(report.outcome).ok();
    let outcome = outcome.as_ref().and_then(serde_json::Value::as_str);
    let hook_input =
        HookInput::subagent_stop(&name, outcome.unwrap_or_default(), false, &report.text);
    let id = InvocationId::of(hook_input.event, &[handle.id.as_bytes()]);
    handle.tell(HookInvocation::new(id, hook_input));
}

/// How a subagent ended and what it has spent. The parent's reservation for it ends with the report, so its budget is
/// reduced to what it has spent.
async fn report_of(handle: &AgentHandle, outcome: SubagentOutcome) -> Result<Report> {
    let (text, error) = last_words(handle).await?;
    let mut guard = handle.lock().await;
    if let Some(spec) = subagents::closed(&guard.state) {
        let spec = Box::new(spec);
        guard.note([SpecSet { spec }.into()]).await?;
    }
    Ok(Report {
        outcome,
        spent: guard.state.subtree_spent(),
        text,
        error: error.filter(|_| outcome != SubagentOutcome::Completed),
    })
}

async fn tell(
    daemon: &Arc<Daemon>,
    child: AgentId,
    parent_link: &ParentLink,
    report: &Report,
) -> Result<()> {
    match daemon.existing(parent_link.parent).await? {
        Some(parent) => note(&parent, child, report).await,
        // The subagent was imported without its parent: there is no agent to report to.
        None => Ok(()),
    }
}

pub async fn note(parent: &AgentHandle, child: AgentId, report: &Report) -> Result<()> {
    let mut guard = parent.lock().await;
    let prompt = PromptId::new(clock::new_id());
    let bodies: Option<Vec<Body>> = subagents::ended(&guard.state, child, report, prompt);
    if let Some(bodies) = bodies {
        if failpoint::injected_bug("told_twice_of_child") {
            guard.note(bodies.clone()).await?;
        }
        guard.note(bodies).await?;
        guard.reconcile();
    }
    Ok(())
}
