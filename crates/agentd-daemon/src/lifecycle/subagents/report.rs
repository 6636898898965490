//! Reports the end of a subagent to its parent, once.

use crate::agent_handle::AgentHandle;
use crate::answer;
use crate::clock;
use crate::daemon::Daemon;
use crate::problem::Result;
use agentd_client::Kind;
use agentd_core::event::{Body, ParentTold, SpecSet, SubagentOutcome};
use agentd_core::hook::{HookInput, HookInvocation};
use agentd_core::id::{AgentId, InvocationId, PromptId};
use agentd_core::state::ParentLink;
use agentd_core::subagents::{self, Report};
use agentd_failpoint as failpoint;
use std::sync::Arc;
use std::time::Duration;

/// Delay before a report that could not be written is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// The answer of a subagent, and its error.
pub async fn last_words(daemon: &Daemon, handle: &AgentHandle) -> (String, Option<String>) {
    let prompt = {
        let guard = handle.lock().await;
        guard
            .state
            .parent_link
            .as_ref()
            .map(|parent_link| parent_link.prompt)
    };
    let Some(prompt) = prompt else {
        return Default::default();
    };
    match answer::answer(daemon, handle, prompt, Duration::ZERO).await {
        Ok(answer) => (answer.text, answer.error),
        // Its text was purged, or the journal cannot be read.
        Err(_) => Default::default(),
    }
}

/// A subagent is being archived: its parent is told first.
pub async fn deleted(daemon: &Arc<Daemon>, handle: &Arc<AgentHandle>) -> Result<()> {
    let parent_link = handle.lock().await.state.parent_link.clone();
    match parent_link {
        Some(parent_link) if parent_link.outcome.is_none() => {
            let report = report_of(daemon, handle, SubagentOutcome::Deleted).await?;
            tell(daemon, handle.id, &parent_link, &report).await?;
            invoke_stop_hooks(daemon, handle, &report).await;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Reports the end of a subagent to its parent, and tries again until that is recorded.
pub async fn report(daemon: Arc<Daemon>, handle: Arc<AgentHandle>) {
    while let Err(problem) = try_report(&daemon, &handle).await {
        tracing::error!(agent = %handle.id, %problem, "end of subagent not reported to its parent");
        if daemon.is_ending() {
            break;
        }
        // tidy: polls until the journal can be written again
        tokio::time::sleep(AGAIN).await;
    }
    let mut guard = handle.lock().await;
    guard.reporting = false;
    daemon.reconcile(&handle, &mut guard);
}

async fn try_report(daemon: &Arc<Daemon>, handle: &Arc<AgentHandle>) -> Result<()> {
    let parent_link = {
        let guard = handle.lock().await;
        let parent_link = guard.state.parent_link.clone();
        parent_link.filter(|_| guard.state.owes_report())
    };
    let Some(parent_link) = parent_link else {
        return Ok(());
    };
    if let Some(outcome) = parent_link.outcome {
        let report = report_of(daemon, handle, outcome).await?;
        tell(daemon, handle.id, &parent_link, &report).await?;
        invoke_stop_hooks(daemon, handle, &report).await;
    }
    handle.lock().await.note([ParentTold {}.into()]).await?;
    Ok(())
}

/// Invokes SubagentStop hooks for a subagent that did not complete; for one that completed they ran before its turn
/// ended. Once per subagent: for an archived subagent they do not run again when its turn ends.
async fn invoke_stop_hooks(daemon: &Arc<Daemon>, handle: &Arc<AgentHandle>, report: &Report) {
    if report.outcome == SubagentOutcome::Completed {
        return;
    }
    let name = handle.lock().await.state.name.clone();
    let outcome = serde_json::to_value(report.outcome).ok();
    let outcome = outcome.as_ref().and_then(serde_json::Value::as_str);
    let hook_input =
        HookInput::subagent_stop(&name, outcome.unwrap_or_default(), false, &report.text);
    let id = InvocationId::of(hook_input.event, &[handle.id.as_bytes()]);
    daemon.tell(handle, HookInvocation::new(id, hook_input));
}

/// How it ended and what it has spent. Its budget lease ends with the report.
async fn report_of(
    daemon: &Daemon,
    handle: &AgentHandle,
    outcome: SubagentOutcome,
) -> Result<Report> {
    let (text, error) = last_words(daemon, handle).await;
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
    let parent = match daemon.handle(parent_link.parent).await {
        Ok(parent) => parent,
        // It was imported without its parent: there is no agent to report to.
        Err(problem) if problem.kind == Kind::NotFound => return Ok(()),
        Err(problem) => return Err(problem),
    };
    note(daemon, &parent, child, report).await
}

pub async fn note(
    daemon: &Arc<Daemon>,
    parent: &Arc<AgentHandle>,
    child: AgentId,
    report: &Report,
) -> Result<()> {
    let mut guard = parent.lock().await;
    let prompt = PromptId::new(clock::new_id());
    let bodies: Option<Vec<Body>> = subagents::ended(&guard.state, child, report, prompt);
    if let Some(bodies) = bodies {
        if failpoint::injected_bug("told_twice_of_child") {
            guard.note(bodies.clone()).await?;
        }
        guard.note(bodies).await?;
        daemon.reconcile(parent, &mut guard);
    }
    Ok(())
}
