//! Sets a label on the current position of the conversation, and writes its transcript.

use super::ops::Asked;
use crate::daemon::AgentHandle;
use crate::error::{Error, Kind, Result};
use agentd_client::api::{Checkpoint, Checkpointed};
use agentd_core::begin::INIT;
use agentd_core::branch_point::TurnName;
use agentd_core::event::{Body, CheckpointSet, OpReceipt};
use agentd_core::id::{ConversationId, Seq};
use agentd_core::plain::is_plain_line;
use agentd_core::recover::SESSION_LATEST;
use agentd_failpoint as failpoint;

const LONGEST: usize = 64;

pub async fn checkpoint(
    handle: &AgentHandle,
    ask: Checkpoint,
    asked: &Asked,
) -> Result<Checkpointed> {
    let mut guard = handle.lock().await;
    if let Some(made) = asked.made(&guard.state)?.cloned() {
        drop(guard);
        let (label, at) = match made.operation.receipt {
            OpReceipt::Checkpoint { label, at } => (label, at),
            _ => (format!("at-{}", made.seq), made.seq),
        };
        return set(handle, made.conversation, label, at).await;
    }
    let Some(current) = guard.state.tree.current_conversation() else {
        return Err(Error::new(Kind::Conflict, "the agent has no conversation"));
    };
    let (conversation, at) = (current.id, current.head);
    let label = ask.label.unwrap_or_else(|| format!("at-{at}"));
    if label.trim().is_empty() || label.len() > LONGEST {
        let what = format!("a label must have 1 to {LONGEST} bytes");
        return Err(Error::new(Kind::Invalid, what));
    }
    if !is_plain_line(&label) && !failpoint::injected_bug("terminal_raw") {
        let what = "a label must be one line without control characters";
        return Err(Error::new(Kind::Invalid, what));
    }
    if label == INIT || label == SESSION_LATEST {
        let what = format!("`{label}` is a label that agentd sets");
        return Err(Error::new(Kind::Invalid, what).next("choose another label"));
    }
    if TurnName::parse(&label).is_some() {
        let what = format!("`{label}` cannot be a label: it names a turn");
        return Err(Error::new(Kind::Invalid, what).next("choose another label"));
    }
    let label_set = CheckpointSet {
        label: label.clone(),
        at: Some(at),
    };
    let receipt = OpReceipt::Checkpoint {
        label: label.clone(),
        at,
    };
    let bodies = [Body::from(label_set)].into_iter();
    guard.note(bodies.chain(asked.with(receipt))).await?;
    drop(guard);
    set(handle, conversation, label, at).await
}

/// The label is set; this writes the transcript.
async fn set(
    handle: &AgentHandle,
    conversation: ConversationId,
    label: String,
    at: Seq,
) -> Result<Checkpointed> {
    let transcript = handle
        .daemon
        .transcripts
        .need(handle.id, conversation)
        .await;
    let transcript = transcript.map_err(|error| {
        let what = "the label is set, but the transcript cannot be written";
        Error::new(Kind::Unavailable, what).because(error)
    })?;
    Ok(Checkpointed {
        conversation,
        label,
        seq: at,
        transcript: transcript.display().to_string(),
    })
}
