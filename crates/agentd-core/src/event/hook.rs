//! Hooks: users' programs that agentd runs when an event happens.

pub use crate::hook::HookOutcome;

use crate::hook::{Decision, HookEvent, Layer};
use crate::id::{BootId, CallId, HookId, InvocationId, OpId, PromptId};
use serde::{Deserialize, Serialize};

/// A handler may run from here on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookStarted {
    pub hook: HookId,
    /// All handlers of the same invocation have the same id.
    /// The journal calls this field `fire`.
    #[serde(rename = "fire")]
    pub invocation: InvocationId,
    pub event: HookEvent,
    pub layer: Layer,
    /// The handler's name: a digest of what it runs.
    pub handler: String,
    pub way: HookWay,
    /// agentd does not wait for it, and it decides nothing.
    #[serde(default, rename = "async", skip_serializing_if = "std::ops::Not::not")]
    pub is_async: bool,
    /// Its failure counts as a denial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fails_closed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<BootId>,
    /// The operation of which it is a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookWay {
    Command,
    Http,
}

/// How a handler ended. Its text, if any, is in the [`super::HookOutput`] immediately before, in the same append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookEnded {
    pub hook: HookId,
    /// The journal calls this field `fire`.
    #[serde(rename = "fire")]
    pub invocation: InvocationId,
    pub outcome: HookOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    pub decision: Decision,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_words: bool,
    pub duration_ms: u64,
}

/// A hook refused the prompt. The model never sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptBlocked {
    pub prompt: PromptId,
}
