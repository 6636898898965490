//! What approving and denying a call have in common. The first answer counts, from any client, and only for the call
//! that the user saw.

use super::ops::Asked;
use crate::caller::Caller;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::{Error, Kind, Result};
use crate::view;
use agentd_client::api::Call;
use agentd_core::event::{AnsweredBy, ApprovalAnswered, Body, Decision};
use agentd_core::id::ApprovalId;
use agentd_core::mcp;
use agentd_core::plain::is_plain_line;
use agentd_failpoint as failpoint;

/// Characters of a client's name that are recorded.
const CLIENT_CHARACTERS: usize = 64;

/// Which call is answered, and by whom.
pub struct Question {
    pub approval: ApprovalId,
    /// The digest of the call that the user saw.
    pub hash: Option<String>,
    pub by: AnsweredBy,
}

/// What is answered.
pub struct Answered {
    /// None if it cannot be read.
    pub call: Option<Call>,
    /// None if the call waits for approval.
    pub question: Option<mcp::Question>,
}

pub fn answered_by(caller: Caller, client: Option<&str>) -> AnsweredBy {
    let client = client.filter(|client| is_plain_line(client));
    AnsweredBy {
        caller: caller.kind().to_owned(),
        uid: rustix::process::getuid().as_raw(),
        client: client.map(|client| client.chars().take(CLIENT_CHARACTERS).collect()),
    }
}

/// Records the answer, in one append with the events that `more` returns for the agent and the call.
pub async fn answer(
    handle: &AgentHandle,
    question: Question,
    decision: Decision,
    more: impl FnOnce(&AgentGuard<'_>, &Answered) -> Result<Vec<Body>>,
    asked: &Asked,
) -> Result<()> {
    let approval = question.approval;
    let Some(asker) = asker(handle, approval, asked).await? else {
        return Ok(());
    };
    let mut guard = asker.lock().await;
    guard.check_released()?;
    if !is_asked(&guard, approval) {
        let what = format!("no call is waiting for approval {approval}");
        return Err(Error::new(Kind::Conflict, what)
            .because("it was answered or withdrawn, or never existed"));
    }
    let what = Answered {
        call: view::approvals::call(&guard, approval).await,
        question: view::approvals::question(&guard, approval).await,
    };
    check_hash(question.hash.as_deref(), what.call.as_ref())?;
    let answered = Body::from(ApprovalAnswered {
        by: Some(question.by),
        ..ApprovalAnswered::new(approval, decision)
    });
    let more = more(&guard, &what)?;
    let changes_spec = more.iter().any(|body| matches!(body, Body::SpecSet(_)));
    // What the user filled in comes before the decision, which makes the runtime pass it on.
    let is_content = |body: &Body| matches!(body, Body::QuestionAnswered(_));
    let (content, more): (Vec<Body>, Vec<Body>) = more.into_iter().partition(is_content);
    let bodies = content.into_iter().chain([answered]).chain(more);
    let bodies = bodies.chain(asked.line());
    guard.note(bodies).await?;
    // The answer is durable before it takes effect.
    failpoint::hit("at", "barrier.5");
    if changes_spec {
        guard.end_process();
    }
    guard.reconcile();
    Ok(())
}

/// The agent whose call is waiting: the agent itself, or one of its descendants, whose approvals the same user answers.
/// None if this op has answered it before.
async fn asker(
    handle: &AgentHandle,
    approval: ApprovalId,
    asked: &Asked,
) -> Result<Option<AgentHandle>> {
    if is_asked(&handle.lock().await, approval) {
        return Ok(Some(handle.clone()));
    }
    let below = view::subagents::below(handle).await;
    for answered in below.iter().chain([handle]) {
        if asked.is_made(&answered.lock().await.state)? {
            return Ok(None);
        }
    }
    for child in below {
        if is_asked(&child.lock().await, approval) {
            return Ok(Some(child));
        }
    }
    Ok(Some(handle.clone()))
}

fn is_asked(guard: &AgentGuard<'_>, approval: ApprovalId) -> bool {
    let mut waiting = guard.state.approvals.waiting();
    waiting.any(|(id, _)| *id == approval)
}

/// Checks that the call that would run is the one that the user saw.
fn check_hash(seen: Option<&str>, call: Option<&Call>) -> Result<()> {
    let is_same = |seen| call.is_some_and(|call| call.hash == seen);
    if seen.is_none_or(is_same) {
        return Ok(());
    }
    let what = "the call is not the one that the answer is for";
    Err(Error::new(Kind::Conflict, what).next("look at it again: `agentd show`"))
}
