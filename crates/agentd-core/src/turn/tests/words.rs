//! Effects and events as lines that a test can compare.

use crate::event::*;
use crate::id::TryId;
use crate::mcp::QuestionReply;
use crate::turn::{Consent, Effect};
use serde::Serialize;
use serde_json::Value;

pub fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Append { events, ends } => append(events, *ends),
        Effect::Send { request_id, .. } => format!("send {request_id}"),
        Effect::CancelRequest { request } => format!("cancel {request}"),
        Effect::PrepareTool { call, consent } => match consent {
            Consent::NotAsked => format!("prepare {}", call.id),
            Consent::Given | Consent::OfHook => format!("prepare {} with consent", call.id),
        },
        Effect::RunTool { call, .. } => format!("run {}", call.id),
        Effect::CancelTool { call } => format!("cancel {call}"),
        Effect::InvokeHooks { invocation } => {
            format!("invoke {} {}", invocation.hook_input.event, invocation.id)
        }
        Effect::ReadInstructions { .. } => "read instructions".to_owned(),
        Effect::AnswerTool { call, reply, .. } => match reply {
            QuestionReply::Accept(content) => {
                format!("answer {call} {}", Value::Object(content.clone()))
            }
            QuestionReply::Decline => format!("answer {call} declined"),
        },
        Effect::ListMcp { unknown, .. } => format!("list mcp {}", unknown.join(" ")),
        Effect::ScanFiles { .. } => "scan files".to_owned(),
        Effect::Backoff {
            failures,
            at_least_ms,
        } => match at_least_ms {
            None => format!("back off {failures}"),
            Some(ms) => format!("back off {failures}, at least {ms} ms"),
        },
        Effect::Reload { through, .. } => format!("reload through {through}"),
        Effect::Stopped => "stopped".to_owned(),
    }
}

pub fn append(events: &[NewEvent], ends: Option<TryId>) -> String {
    let bodies: Vec<String> = events.iter().map(|event| body(&event.body)).collect();
    let ends = ends.map_or_else(String::new, |request| format!(" (ends {request})"));
    format!("append {}{ends}", bodies.join(", "))
}

/// The kind, and the parts of the body that a test may want to distinguish.
fn body(body: &Body) -> String {
    let kind = body.kind().name();
    let more = match body {
        Body::TurnStarted(started) => started.resumes.map_or("", |_| "resumes").to_owned(),
        Body::TurnPaused(paused) => name(&paused.reason),
        Body::TurnEnded(ended) => {
            let limit = ended.limit.as_ref().map(name);
            let failure = ended.failure.as_ref().map(name);
            let parts = [Some(name(&ended.status)), limit, failure];
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        Body::PromptsTaken(taken) if taken.prompts.len() > 1 => taken.prompts.len().to_string(),
        Body::RequestSent(sent) => match sent.purpose {
            Purpose::Answer => sent.request.to_string(),
            Purpose::Compact => format!("{} compact", sent.request),
        },
        Body::RequestEnded(ended) => match ended.outcome {
            RequestOutcome::Completed => "completed".to_owned(),
            RequestOutcome::Failed { class, .. } => format!("failed {}", name(&class)),
            RequestOutcome::Interrupted => "interrupted".to_owned(),
            RequestOutcome::Lost => "lost".to_owned(),
        },
        Body::MessageAdded(message) => name(&message.status),
        Body::ToolStarted(started) => started.call.to_string(),
        Body::ToolEnded(ended) => format!("{} {}", ended.call, name(&ended.outcome)),
        Body::ApprovalRequested(asked) => asked.call.to_string(),
        Body::Notice(notice) => name(&notice.cause),
        Body::Compacted(compacted) => format!("through {}", compacted.through.seq),
        // These belong to the event before them.
        _ => String::new(),
    };
    if more.is_empty() {
        kind.to_owned()
    } else {
        format!("{kind} {more}")
    }
}

fn name(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        other => panic!("no name: {other:?}"),
    }
}
