//! Hooks: users' programs that hear of what happens.

use crate::hook::{Decision, HookEvent, Layer};
use crate::id::{BootId, CallId, HookId, InvocationId, OpId, PromptId};
use serde::{Deserialize, Serialize};

/// A handler may run now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookStarted {
    pub hook: HookId,
    /// All handlers that hear of the same thing have the same.
    /// In the journal it is called `fire`.
    #[serde(rename = "fire")]
    pub invocation: InvocationId,
    pub event: HookEvent,
    pub layer: Layer,
    /// The handler's name: a digest of what it runs.
    pub handler: String,
    pub way: HookWay,
    /// Nobody waits for it, and it decides nothing.
    #[serde(default, rename = "async", skip_serializing_if = "std::ops::Not::not")]
    pub is_async: bool,
    /// Its failure is a no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fails_closed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<BootId>,
    /// The operation that it is a step of.
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

/// What became of it. Its words, if any, are in the [`super::HookOutput`] right before, in the same append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookEnded {
    pub hook: HookId,
    /// In the journal it is called `fire`.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookOutcome {
    Ran,
    /// It has not, and never will.
    NotRun,
    /// It may have, or a part of it.
    Unknown,
}

/// A hook refused it: the model never sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptBlocked {
    pub prompt: PromptId,
}
