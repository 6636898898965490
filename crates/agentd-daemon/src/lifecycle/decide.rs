//! An answer to a question about a call, of the agent or of one that works for it. The first one counts, from
//! whichever client.

use super::ops::Asked;
use crate::daemon::Daemon;
use crate::desk::{Desk, Guard};
use crate::problem::Result;
use crate::view;
use agentd_client::{Kind, Problem};
use agentd_core::event::{ApprovalAnswered, Body, Decision};
use agentd_core::id::ApprovalId;
use agentd_process::failpoint;
use std::sync::Arc;

pub async fn decide(
    daemon: &Arc<Daemon>,
    desk: &Arc<Desk>,
    approval: ApprovalId,
    decision: Decision,
    asked: &Asked,
) -> Result<()> {
    let mut asker = Arc::clone(desk);
    if !is_asked(&asker.lock().await, approval) {
        // Whoever works for the agent asks the same user.
        let below = view::kin::below(daemon, desk).await;
        for answered in below.iter().chain([desk]) {
            if asked.is_made(&answered.lock().await.state)? {
                return Ok(());
            }
        }
        for child in below {
            if is_asked(&child.lock().await, approval) {
                asker = child;
                break;
            }
        }
    }
    let desk = &asker;
    let mut guard = desk.lock().await;
    if !is_asked(&guard, approval) {
        let what = format!("no call waits for leave as {approval}");
        return Err(Problem::new(Kind::Conflict, what)
            .because("it was answered or withdrawn, or never asked"));
    }
    let bodies = [Body::from(ApprovalAnswered { approval, decision })].into_iter();
    guard.note(bodies.chain(asked.line())).await?;
    // The answer is durable before it counts.
    failpoint::hit("at", "barrier.5");
    daemon.mind(desk, &mut guard);
    Ok(())
}

fn is_asked(guard: &Guard<'_>, approval: ApprovalId) -> bool {
    let mut waiting = guard.state.approvals.waiting();
    waiting.any(|(id, _)| *id == approval)
}
