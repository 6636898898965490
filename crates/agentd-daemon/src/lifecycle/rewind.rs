//! A new conversation from a place of an earlier one. It is a reset that goes somewhere else: the same steps,
//! the same receipt, and undo takes it back.

use super::{place, reset};
use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::problem::{Result, of_refusal};
use agentd_client::api::{Receipt, Rewind};
use agentd_core::begin::Refused;
use agentd_core::event::{ResetSource, ResetTo};
use std::sync::Arc;

pub async fn rewind(daemon: &Arc<Daemon>, desk: &Arc<Desk>, ask: Rewind) -> Result<Receipt> {
    let guard = desk.lock().await;
    // The place may not be there any more, as this conversation calls it, when one is asked for again.
    let known = ask
        .op
        .and_then(|op| Some((op, guard.state.resets.asked_for(op)?)));
    match known {
        Some((op, ResetTo::Rewind { .. })) => {
            drop(guard);
            return reset::over(daemon, desk, op).await;
        }
        Some((op, _)) => return Err(of_refusal(&Refused::OtherOp(Box::new(op)))),
        None => {}
    }
    let current = guard.state.tree.current();
    let conversation = ask.conversation.or(current);
    let conversation = conversation.ok_or_else(|| of_refusal(&Refused::NoConversation))?;
    let place = place::find(daemon, &guard.state, conversation, &ask.to).await?;
    let to = ResetTo::Rewind {
        at: place.at,
        conversation: Some(place.conversation),
    };
    reset::ordered(daemon, desk, guard, (to, ResetSource::User), ask.into()).await
}
