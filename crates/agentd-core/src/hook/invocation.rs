//! Hook invocations. The id is derived from the subject, so that each invocation runs once.

use super::HookEvent;
use super::hook_input::HookInput;
use crate::digest::uuid_of;
use crate::id::{AgentId, CallId, ConversationId, InvocationId, OpId, PromptId, TurnId};
use serde::{Deserialize, Serialize};

/// A hook invocation. The same id always returns the same recorded result, after any crash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookInvocation {
    pub id: InvocationId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
    /// The conversation that it is about; `None` means the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    pub hook_input: HookInput,
}

impl HookInvocation {
    pub fn new(id: InvocationId, hook_input: HookInput) -> Self {
        Self {
            id,
            turn: None,
            op: None,
            conversation: None,
            hook_input,
        }
    }

    /// About a call of a turn.
    pub fn of_call(turn: TurnId, call: &CallId, hook_input: HookInput) -> Self {
        let parts = [turn.as_bytes().as_slice(), call.as_str().as_bytes()];
        let id = InvocationId::of(hook_input.event, &parts);
        Self {
            turn: Some(turn),
            ..Self::new(id, hook_input)
        }
    }

    /// About a prompt whose text was changed `edits` times.
    pub fn of_prompt(prompt: PromptId, edits: u32, hook_input: HookInput) -> Self {
        Self::new(Self::prompt_id(prompt, edits), hook_input)
    }

    /// The id of the invocation about a prompt. A changed text is a new subject.
    pub fn prompt_id(prompt: PromptId, edits: u32) -> InvocationId {
        let event = HookEvent::UserPromptSubmit;
        let prompt = prompt.as_bytes().as_slice();
        match edits {
            0 => InvocationId::of(event, &[prompt]),
            edits => InvocationId::of(event, &[prompt, &edits.to_le_bytes()]),
        }
    }

    /// About the n-th time that this event happens in a turn.
    pub fn of_turn(turn: TurnId, n: u64, hook_input: HookInput) -> Self {
        let parts = [turn.as_bytes().as_slice(), &n.to_le_bytes()];
        let id = InvocationId::of(hook_input.event, &parts);
        Self {
            turn: Some(turn),
            ..Self::new(id, hook_input)
        }
    }

    /// A step of a lifecycle operation.
    pub fn of_op(agent: AgentId, op: OpId, hook_input: HookInput) -> Self {
        let parts = [agent.as_bytes().as_slice(), op.as_bytes()];
        let id = InvocationId::of(hook_input.event, &parts);
        Self {
            op: Some(op),
            ..Self::new(id, hook_input)
        }
    }

    /// The beginning of a conversation.
    pub fn of_conversation(conversation: ConversationId, hook_input: HookInput) -> Self {
        let id = InvocationId::of(hook_input.event, &[conversation.as_bytes()]);
        Self {
            conversation: Some(conversation),
            ..Self::new(id, hook_input)
        }
    }
}

impl InvocationId {
    /// The id of an invocation for this event and these parts of its subject.
    pub fn of(event: HookEvent, parts: &[&[u8]]) -> Self {
        let mut all = vec![event.name().as_bytes()];
        all.extend(parts);
        Self::new(uuid_of(&all))
    }
}
