//! An answer to a question about a call. The first one counts, from whichever client.

use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::problem::Result;
use agentd_client::{Kind, Problem};
use agentd_core::event::{ApprovalAnswered, Decision};
use agentd_core::id::ApprovalId;
use agentd_process::failpoint;
use std::sync::Arc;

pub async fn decide(
    daemon: &Arc<Daemon>,
    desk: &Arc<Desk>,
    approval: ApprovalId,
    decision: Decision,
) -> Result<()> {
    let mut guard = desk.lock().await;
    let is_asked = {
        let mut waiting = guard.state.approvals.waiting();
        waiting.any(|(id, _)| *id == approval)
    };
    if !is_asked {
        let what = format!("no call waits for leave as {approval}");
        return Err(Problem::new(Kind::Conflict, what)
            .because("it was answered or withdrawn, or never asked"));
    }
    guard
        .note([ApprovalAnswered { approval, decision }.into()])
        .await?;
    // The answer is durable before it counts.
    failpoint::hit("at", "barrier.5");
    daemon.mind(desk, &mut guard);
    Ok(())
}
