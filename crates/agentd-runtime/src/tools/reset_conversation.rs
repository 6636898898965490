//! `reset_conversation`: the agent requests a reset. The tool only records the request; the daemon resets the
//! conversation when the turn has ended.

use super::blocking::Cancelled;
use super::context::ToolContext;
use super::failure::{Failure, said};
use super::tool::{Job, Tool};
use super::traits::Traits;
use agentd_core::event::{Note, ResetScheduled};
use agentd_core::message::CallOutcome;
use agentd_core::permission::Subject;
use agentd_core::turn::Finished;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) struct ResetConversation;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    #[serde(default)]
    reason: String,
}

#[async_trait]
impl Tool for ResetConversation {
    const NAME: &'static str = "reset_conversation";
    const TRAITS: Traits = Traits {
        parallel: false,
        idempotent: true,
        approval: false,
    };
    type Arguments = Arguments;

    fn description() -> String {
        "Requests a new conversation, which begins when this turn has ended. Use it when a task is finished and \
         the next one needs nothing of this conversation. You will remember nothing of it, so write what you \
         need into a file first. Files and background tasks are not affected."
            .into()
    }

    fn parameters() -> Value {
        json!({
            "type": "object",
            "properties": {
                "reason": {"type": "string", "description": "The reason, for the log."}
            },
            "additionalProperties": false
        })
    }

    fn subjects(_context: &ToolContext, arguments: &Arguments) -> Result<Vec<Subject>, Failure> {
        Ok(vec![Subject::name(arguments.reason.trim())])
    }

    async fn run(job: Job<Arguments>, _cancelled: Cancelled) -> Finished {
        let text = "A new conversation begins when this turn has ended.";
        let mut finished = said(CallOutcome::Ok, text);
        finished.also.push(ResetScheduled {}.into());
        let reason = job.context.secrets.redact(job.arguments.reason.trim());
        if !reason.is_empty() {
            let (about, text) = (None, reason);
            finished.also.push(Note { about, text }.into());
        }
        finished
    }
}

#[cfg(test)]
mod tests;
