//! Begins a conversation from a branch point. It is a reset with another target: the same steps, the same receipt, and
//! undo reverses it.

use super::{branch_point, reset};
use crate::daemon::AgentHandle;
use crate::error::{Error, Result};
use agentd_client::api::{Receipt, Rewind};
use agentd_core::begin::Refused;
use agentd_core::event::{ResetSource, ResetTo};

pub async fn rewind(handle: &AgentHandle, ask: Rewind) -> Result<Receipt> {
    let guard = handle.lock().await;
    // A repeated request does not look for the branch point again: the current conversation may be another one now.
    let known = ask
        .op
        .and_then(|op| Some((op, guard.state.resets.asked_for(op)?)));
    match known {
        Some((op, ResetTo::Rewind { .. })) => {
            drop(guard);
            return reset::over(handle, op).await;
        }
        Some((op, _)) => return Err(Error::from(Refused::OtherOp(Box::new(op)))),
        None => {}
    }
    let current = guard.state.tree.current();
    let conversation = ask.conversation.or(current);
    let conversation = conversation.ok_or_else(|| Error::from(Refused::NoConversation))?;
    let place = branch_point::find(&handle.daemon, &guard.state, conversation, &ask.to).await?;
    let to = ResetTo::Rewind {
        at: place.at,
        conversation: Some(place.conversation),
    };
    reset::ordered(handle, guard, (to, ResetSource::User), ask.into()).await
}
