//! A label on where the conversation is, and a transcript of it up to there and beyond.

use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::problem::Result;
use agentd_client::api::{Checkpoint, Checkpointed};
use agentd_client::{Kind, Problem};
use agentd_core::begin::INIT;
use agentd_core::event::CheckpointSet;
use agentd_core::place::TurnName;
use agentd_core::recover::SESSION_LATEST;

const LONGEST: usize = 64;

pub async fn checkpoint(daemon: &Daemon, desk: &Desk, ask: Checkpoint) -> Result<Checkpointed> {
    let mut guard = desk.lock().await;
    let Some(current) = guard.state.tree.current_conversation() else {
        return Err(Problem::new(
            Kind::Conflict,
            "the agent has no conversation",
        ));
    };
    let (conversation, at) = (current.id, current.head);
    let label = ask.label.unwrap_or_else(|| format!("at-{at}"));
    if label.trim().is_empty() || label.len() > LONGEST {
        let what = format!("a label has 1 to {LONGEST} bytes");
        return Err(Problem::new(Kind::Invalid, what));
    }
    if label == INIT || label == SESSION_LATEST {
        let what = format!("`{label}` is set by itself");
        return Err(Problem::new(Kind::Invalid, what).next("choose another word"));
    }
    if TurnName::parse(&label).is_some() {
        let what = format!("`{label}` is how a turn is called");
        return Err(Problem::new(Kind::Invalid, what).next("choose another word"));
    }
    let set = CheckpointSet {
        label: label.clone(),
        at: Some(at),
    };
    guard.note([set.into()]).await?;
    drop(guard);
    let transcript = daemon.transcripts.need(desk.id, conversation).await;
    let transcript = transcript.map_err(|error| {
        let what = "the label is set, and the transcript cannot be written";
        Problem::new(Kind::Unavailable, what).because(error)
    })?;
    Ok(Checkpointed {
        conversation,
        label,
        at,
        transcript: transcript.display().to_string(),
    })
}
