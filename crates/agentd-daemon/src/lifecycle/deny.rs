//! Denies a call that waits for the user. The model reads the reason together with the refusal.

use super::approval::{Answered, Question, answer};
use super::ops::Asked;
use crate::clock;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::Result;
use crate::prompt;
use agentd_client::api::Deny;
use agentd_core::event::{AnsweredBy, Decision, PromptMode};
use agentd_core::id::{ApprovalId, PromptId};

pub async fn deny(
    handle: &AgentHandle,
    approval: ApprovalId,
    (ask, by): (Deny, AnsweredBy),
    asked: &Asked,
) -> Result<()> {
    let question = Question {
        approval,
        hash: ask.hash,
        by,
    };
    let reason = |_: &AgentGuard<'_>, _: &Answered| match &ask.reason {
        // The reason is a prompt that steers the turn.
        Some(reason) => {
            let prompt = PromptId::new(clock::new_id());
            Ok(prompt::bodies(
                prompt,
                prompt::text_blocks(reason)?,
                None,
                PromptMode::Steer,
            )?
            .collect())
        }
        None => Ok(Vec::new()),
    };
    answer(handle, question, Decision::Deny, reason, asked).await
}
