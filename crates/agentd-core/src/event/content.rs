//! What was said. Purge may take these bodies, and no others.

use super::Position;
use crate::hook::Answer;
use crate::id::{CallId, HookId, PromptId, Seq, TryId};
use crate::message::{Block, CallOutcome, Wire};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    pub prompt: PromptId,
    pub blocks: Vec<Block>,
}

/// One reply of the model, however many deltas it came in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageAdded {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<TryId>,
    pub status: MessageStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReason>,
    pub blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageStatus {
    Complete,
    /// Cut off; the model is shown what there is of it.
    Interrupted,
    /// Of a try that was made again; kept in the history, never sent.
    Superseded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    ToolUse,
    MaxTokens,
    Refusal,
    Other,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultAdded {
    pub call: CallId,
    pub outcome: CallOutcome,
    pub blocks: Vec<Block>,
}

/// Something agentd tells the model, in a role of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub cause: NoticeCause,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeCause {
    Interrupted,
    Crashed,
    Restarted,
    Limited,
    TaskEnded,
    TasksCarried,
    Branched,
    Hook,
    Restriction,
}

/// Stands for all that the window held up to `through`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub through: Position,
    pub text: String,
}

/// What the user wants the next summary to heed; no message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instruction {
    pub text: String,
}

/// What a request holds besides its messages, as sent. Written when it changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Context {
    pub provider: String,
    pub wire: Wire,
    pub model: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    pub max_output_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Tokens the model may think with; none turns thinking off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<u64>,
    /// For a model that takes an effort in the place of a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
}

impl Context {
    /// Whether a request under the other one begins differently: another model, or other words before
    /// the first message.
    pub fn differs(&self, other: &Self) -> bool {
        (self.wire, &self.model) != (other.wire, &other.model)
            || self.system != other.system
            || self.tools != other.tools
    }
}

/// How much a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    Low,
    Medium,
    High,
}

/// A tool as the model is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// JSON Schema of an object.
    pub parameters: Value,
}

/// Free text for people (a reason, an error's detail); the model never sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The event it explains; none means the ones in the same append.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<Seq>,
    pub text: String,
}

/// What a hook had to say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookOutput {
    pub hook: HookId,
    #[serde(flatten)]
    pub answer: Answer,
}

/// A hook gave a call other arguments than the model did. It runs with these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRevised {
    pub call: CallId,
    pub arguments: serde_json::Map<String, Value>,
}
