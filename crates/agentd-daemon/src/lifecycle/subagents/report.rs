//! What a parent is told of the end of a subagent, and that it was: once.

use crate::answer;
use crate::clock;
use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::problem::Result;
use agentd_client::Kind;
use agentd_core::event::{Body, ParentTold, SpecSet, SubagentOutcome};
use agentd_core::hook::{Fire, Occasion};
use agentd_core::id::{AgentId, FireId, PromptId};
use agentd_core::kin::{self, Report};
use agentd_core::state::Errand;
use agentd_process::failpoint;
use std::sync::Arc;
use std::time::Duration;

/// Until a report that could not be written is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// The last words of a subagent, and what went wrong.
pub async fn last_words(daemon: &Daemon, desk: &Desk) -> (String, Option<String>) {
    let prompt = {
        let guard = desk.lock().await;
        guard.state.errand.as_ref().map(|errand| errand.prompt)
    };
    let Some(prompt) = prompt else {
        return Default::default();
    };
    match answer::answer(daemon, desk, prompt, Duration::ZERO).await {
        Ok(answer) => (answer.text, answer.error),
        // Its words were purged.
        Err(_) => Default::default(),
    }
}

/// A subagent is being removed: its parent is told before anything else happens to it.
pub async fn deleted(daemon: &Arc<Daemon>, desk: &Arc<Desk>) -> Result<()> {
    let errand = desk.lock().await.state.errand.clone();
    match errand {
        Some(errand) if errand.outcome.is_none() => {
            let report = report_of(daemon, desk, SubagentOutcome::Deleted).await?;
            tell(daemon, desk.id, &errand, &report).await?;
            hooks_hear(daemon, desk, &report).await;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Tells the parent of a subagent that is over, once, however often it is tried.
pub async fn report(daemon: Arc<Daemon>, desk: Arc<Desk>) {
    while let Err(problem) = try_report(&daemon, &desk).await {
        tracing::error!(agent = %desk.id, %problem, "its parent is not told");
        if daemon.is_ending() {
            break;
        }
        // tidy: polls until the journal can be written again
        tokio::time::sleep(AGAIN).await;
    }
    let mut guard = desk.lock().await;
    guard.reporting = false;
    daemon.mind(&desk, &mut guard);
}

async fn try_report(daemon: &Arc<Daemon>, desk: &Arc<Desk>) -> Result<()> {
    let errand = {
        let guard = desk.lock().await;
        let errand = guard.state.errand.clone();
        errand.filter(|_| guard.state.owes_report())
    };
    let Some(errand) = errand else { return Ok(()) };
    if let Some(outcome) = errand.outcome {
        let report = report_of(daemon, desk, outcome).await?;
        tell(daemon, desk.id, &errand, &report).await?;
        hooks_hear(daemon, desk, &report).await;
    }
    desk.lock().await.note([ParentTold {}.into()]).await?;
    Ok(())
}

/// The hooks of one that completed its work were asked before its turn ended; of every other end they hear
/// now. Once for each subagent: of one that was removed they are not told besides how its turn ended.
async fn hooks_hear(daemon: &Arc<Daemon>, desk: &Arc<Desk>, report: &Report) {
    if report.outcome == SubagentOutcome::Completed {
        return;
    }
    let name = desk.lock().await.state.name.clone();
    let outcome = serde_json::to_value(report.outcome).ok();
    let outcome = outcome.as_ref().and_then(serde_json::Value::as_str);
    let occasion = Occasion::subagent_stop(&name, outcome.unwrap_or_default(), false, &report.text);
    let id = FireId::of(occasion.event, &[desk.id.as_bytes()]);
    daemon.tell(desk, Fire::new(id, occasion));
}

/// How it ended, and what it has spent; its lease is over with that.
async fn report_of(daemon: &Daemon, desk: &Desk, outcome: SubagentOutcome) -> Result<Report> {
    let (text, error) = last_words(daemon, desk).await;
    let mut guard = desk.lock().await;
    if let Some(spec) = kin::closed(&guard.state) {
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
    errand: &Errand,
    report: &Report,
) -> Result<()> {
    let parent = match daemon.desk(errand.parent).await {
        Ok(parent) => parent,
        // It was imported without its parent: there is nobody to tell.
        Err(problem) if problem.kind == Kind::NotFound => return Ok(()),
        Err(problem) => return Err(problem),
    };
    note(daemon, &parent, child, report).await
}

pub async fn note(
    daemon: &Arc<Daemon>,
    parent: &Arc<Desk>,
    child: AgentId,
    report: &Report,
) -> Result<()> {
    let mut guard = parent.lock().await;
    let prompt = PromptId::new(clock::new_id());
    let bodies: Option<Vec<Body>> = kin::ended(&guard.state, child, report, prompt);
    if let Some(bodies) = bodies {
        if failpoint::mutant("told_twice_of_child") {
            guard.note(bodies.clone()).await?;
        }
        guard.note(bodies).await?;
        daemon.mind(parent, &mut guard);
    }
    Ok(())
}
