//! Hooks: list, check and test.

use agentd_core::event::HookOutcome;
use agentd_core::hook::{Answer, HookEvent, Layer, OnFailure, Problem, Verdict};
use agentd_core::spec::Runtime;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `GET /v1/hooks`: whose hooks. With neither, the user's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HooksQuery {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// A project's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookList {
    pub sources: Vec<HookSource>,
    pub hooks: Vec<HookLine>,
}

/// A file, or an agent's settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookSource {
    pub layer: Layer,
    pub path: Option<String>,
    /// The digest of its content.
    pub hash: Option<String>,
    pub trusted: bool,
    pub problems: Vec<Problem>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookLine {
    pub event: HookEvent,
    pub matcher: String,
    pub layer: Layer,
    /// The command line, or the address.
    pub run: String,
    /// The digest of what it runs, as in the `hook_started` events of its runs. Empty if the daemon is an older one.
    #[serde(default)]
    pub handler: String,
    pub timeout_ms: u64,
    #[serde(rename = "async")]
    pub is_async: bool,
    pub on_failure: OnFailure,
    pub state: HookState,
    pub can_block: bool,
    /// The kinds of agents for which the event can happen.
    pub runtimes: Vec<Runtime>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookState {
    Active,
    /// It does not run before the user has trusted the present content of its file.
    Untrusted,
    /// An earlier layer has the same hook, which runs once.
    Repeated,
}

/// `POST /v1/hooks/check`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckHooks {
    /// A hooks file.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedHooks {
    /// Handlers that would run.
    pub handlers: u64,
    pub problems: Vec<Problem>,
    pub ok: bool,
}

/// `POST /v1/hooks/test`: runs the handlers that the event would run. Nothing is written to a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestHooks {
    pub event: HookEvent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// They replace fields of the sample input.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestedHooks {
    /// The input of each handler, except for the tool's name, which may differ by handler.
    pub input: Value,
    pub runs: Vec<TestedHook>,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestedHook {
    pub layer: Layer,
    pub run: String,
    pub outcome: HookOutcome,
    pub exit: Option<i32>,
    pub timed_out: bool,
    pub duration_ms: u64,
    pub answer: Answer,
}
