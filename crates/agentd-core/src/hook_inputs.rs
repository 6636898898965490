//! What hooks are told about each event: one constructor of [`HookInput`] per event, with the fields that
//! `docs/hooks.md` lists.

use crate::event::{ResetSource, TurnStatus};
use crate::hook::{HookEvent, HookInput};
use crate::id::CallId;
use crate::message::{Arguments, Attachment, Block, CallOutcome, ToolCall};
use crate::patch::{self, Patch};
use crate::shell_words;
use serde_json::{Map, Value, json};

impl HookInput {
    /// `source` is startup, resume, clear, compact or fork.
    pub fn session_start(source: &str, model: Option<&str>, parent: Option<String>) -> Self {
        let fields = json!({"source": source, "model": model, "parent_session_id": parent});
        Self::new(HookEvent::SessionStart, fields)
    }

    pub fn session_end(reason: &str, next: Option<String>) -> Self {
        let fields = json!({"reason": reason, "next_session_id": next});
        Self::new(HookEvent::SessionEnd, fields)
    }

    /// `source` is the kind of reset: clear, undo, redo or rewind. `by` is who requested it, and `reason` is the
    /// reason that was given.
    pub fn pre_reset(source: &str, by: ResetSource, reason: Option<&str>) -> Self {
        let fields = json!({"source": source, "by": by, "reason": reason});
        Self::new(HookEvent::PreReset, fields)
    }

    /// Of attached files, hooks get the names and types.
    pub fn user_prompt_submit(blocks: &[Block]) -> Self {
        let attachments = blocks.iter().filter_map(Block::as_attachment);
        let attachments: Vec<_> = attachments.map(Attachment::info).collect();
        let mut fields = json!({"prompt": text_of(blocks)});
        if !attachments.is_empty() {
            fields["attachments"] = json!(attachments);
        }
        Self::new(HookEvent::UserPromptSubmit, fields)
    }

    /// Before a call: PreToolUse, or PermissionRequest if the user would be asked.
    pub fn before_call(event: HookEvent, call: &ToolCall) -> Self {
        let mut fields = json!({
            "tool_name": call.name,
            "tool_input": tool_input(call),
            "tool_use_id": call.id.as_str(),
        });
        if let Some(paths) = patched_paths(call) {
            fields["tool_paths"] = json!(paths);
        }
        Self::new(event, fields)
    }

    /// After a call: PostToolUse, or PostToolUseFailure if it failed. The duration is unknown if the call ended while
    /// no runtime was connected to it.
    pub fn after_call(
        call: &ToolCall,
        outcome: CallOutcome,
        blocks: &[Block],
        duration_ms: Option<u64>,
    ) -> Self {
        let text = text_of(blocks);
        let (event, more) = match outcome {
            CallOutcome::Ok => {
                let more = json!({"tool_response": text, "duration_ms": duration_ms});
                (HookEvent::PostToolUse, more)
            }
            _ => {
                let is_interrupt = outcome == CallOutcome::Interrupted;
                let more = json!({"error": text, "is_interrupt": is_interrupt, "duration_ms": duration_ms});
                (HookEvent::PostToolUseFailure, more)
            }
        };
        let mut hook_input = Self::before_call(event, call);
        hook_input.fields.extend(Self::new(event, more).fields);
        hook_input
    }

    /// `is_active`: a hook has already kept this turn from ending.
    pub fn stop(is_active: bool, last_message: &str) -> Self {
        let fields = json!({"stop_hook_active": is_active, "last_assistant_message": last_message});
        Self::new(HookEvent::Stop, fields)
    }

    /// A subagent begins. The hooks of its parent receive this.
    pub fn subagent_start(agent: &str, kind: Option<&str>, background: bool) -> Self {
        let fields = json!({"subagent": agent, "kind": kind, "background": background});
        Self::new(HookEvent::SubagentStart, fields)
    }

    /// The end of a subagent; `outcome` is completed, failed, interrupted, limited, lost, reset or deleted.
    pub fn subagent_stop(agent: &str, outcome: &str, is_active: bool, last_message: &str) -> Self {
        let fields = json!({
            "subagent": agent,
            "outcome": outcome,
            "stop_hook_active": is_active,
            "last_assistant_message": last_message,
        });
        Self::new(HookEvent::SubagentStop, fields)
    }

    /// A turn has ended without an answer: as failed, limited or lost.
    pub fn stop_failure(status: TurnStatus, error: &str) -> Self {
        let fields = json!({"error": error, "status": status});
        Self::new(HookEvent::StopFailure, fields)
    }

    /// `trigger` is manual or auto.
    pub fn pre_compact(trigger: &str, instructions: Option<&str>) -> Self {
        let fields = json!({
            "trigger": trigger,
            "custom_instructions": instructions.unwrap_or_default(),
        });
        Self::new(HookEvent::PreCompact, fields)
    }

    pub fn post_compact(trigger: &str, summary: &str) -> Self {
        let fields = json!({"trigger": trigger, "compact_summary": summary});
        Self::new(HookEvent::PostCompact, fields)
    }

    pub fn notification(kind: &str, message: &str) -> Self {
        let fields = json!({"notification_type": kind, "message": message});
        Self::new(HookEvent::Notification, fields)
    }

    /// A turn has ended. The type is `turn_` followed by the turn's status.
    pub fn turn_over(status: TurnStatus, message: &str) -> Self {
        let kind = match status {
            TurnStatus::Completed => "turn_completed",
            TurnStatus::Interrupted => "turn_interrupted",
            TurnStatus::Failed => "turn_failed",
            TurnStatus::Limited => "turn_limited",
            TurnStatus::Lost => "turn_lost",
        };
        Self::notification(kind, message)
    }

    /// One sample of each event, to try handlers with.
    pub fn sample(event: HookEvent) -> Self {
        let call = ToolCall {
            id: CallId::new("call_test"),
            name: "shell".to_owned(),
            arguments: Arguments::parse(r#"{"command":"echo hello"}"#),
            signature: None,
        };
        let said = [Block::text("hello")];
        match event {
            HookEvent::SessionStart => Self::session_start("startup", None, None),
            HookEvent::SessionEnd => Self::session_end("clear", None),
            HookEvent::UserPromptSubmit => Self::user_prompt_submit(&said),
            HookEvent::PreToolUse | HookEvent::PermissionRequest => Self::before_call(event, &call),
            HookEvent::PostToolUse => Self::after_call(&call, CallOutcome::Ok, &said, Some(12)),
            HookEvent::PostToolUseFailure => {
                Self::after_call(&call, CallOutcome::Error, &said, Some(12))
            }
            HookEvent::Stop => Self::stop(false, "hello"),
            HookEvent::StopFailure => Self::stop_failure(TurnStatus::Failed, "unavailable"),
            HookEvent::SubagentStart => Self::subagent_start("helper", None, false),
            HookEvent::SubagentStop => Self::subagent_stop("helper", "completed", false, "hello"),
            HookEvent::PreCompact => Self::pre_compact("manual", None),
            HookEvent::PostCompact => Self::post_compact("manual", "hello"),
            HookEvent::Notification => Self::notification("permission_prompt", "hello"),
            HookEvent::PreReset => Self::pre_reset("clear", ResetSource::User, None),
            HookEvent::Interrupt => Self::new(event, json!({})),
            HookEvent::AgentExit => Self::new(event, json!({"reason": "stopped", "exit_code": 0})),
            HookEvent::AgentRestart => Self::new(event, json!({"reason": "restart"})),
            HookEvent::DaemonStart => Self::new(event, json!({})),
            HookEvent::DaemonStop => Self::new(event, json!({"reason": "stop"})),
        }
    }
}

/// The arguments of a call. A command is a line, however the model gave it.
pub(crate) fn tool_input(call: &ToolCall) -> Map<String, Value> {
    let arguments = call.arguments.to_object();
    match call.name.as_str() {
        shell_words::TOOL => shell_words::with_line(arguments),
        _ => arguments,
    }
}

/// The files that a patch changes.
fn patched_paths(call: &ToolCall) -> Option<Vec<String>> {
    if call.name != patch::TOOL {
        return None;
    }
    let arguments = call.arguments.to_object();
    let patch = Patch::parse(arguments.get("input")?.as_str()?).ok()?;
    Some(patch.paths().into_iter().map(str::to_owned).collect())
}

fn text_of(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } | Block::Annotated { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
