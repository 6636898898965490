//! Events that hold text. Purge may delete these bodies and no others.

use super::{CommandEnd, Position};
use crate::hook::Answer;
use crate::id::{CallId, CommandId, HookId, PromptId, Seq, TryId};
use crate::message::{Block, CallOutcome, FileKind, Wire};
use crate::spec::{ServerTool, Verbosity};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    pub prompt: PromptId,
    pub blocks: Vec<Block>,
}

/// One reply of the model, in however many deltas it arrived.
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
    /// Cut off. The model sees the part that arrived.
    Interrupted,
    /// Part of an attempt that was repeated. Kept in the history, never sent.
    Superseded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    ToolUse,
    MaxTokens,
    Refusal,
    /// The provider has paused a long reply; the next request continues it.
    Paused,
    Other,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultAdded {
    pub call: CallId,
    pub outcome: CallOutcome,
    pub blocks: Vec<Block>,
}

/// A message of agentd to the model, in its own role.
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
    /// The user restored files, or took a restore back.
    FilesRestored,
    /// What tools lack of the variables and services that the settings pass to them.
    Environment,
    /// The provider has paused the reply.
    Paused,
    /// The agent's plan, after a summary has replaced the call that set it.
    Plan,
    /// What comes before was imported from the history of another program.
    Imported,
}

/// An instruction file that has changed, or that the model comes across. Told to the model like a notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstructionsChanged {
    pub path: String,
    /// The digest of its text; none if its instructions no longer apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What the model is told.
    pub text: String,
}

/// The text of a command that the user runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLine {
    pub command: CommandId,
    pub line: String,
}

/// What a command of the user wrote. The model sees it when a [`super::CommandsTaken`] names the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandOutput {
    pub command: CommandId,
    pub line: String,
    /// Stdout and stderr as they arrived, without secrets. Long output is cut in the middle.
    pub output: String,
    #[serde(flatten)]
    pub end: CommandEnd,
}

impl CommandOutput {
    /// What the model is told.
    pub fn told(&self) -> String {
        let output = match self.output.trim_end() {
            "" => "(no output)",
            output => output,
        };
        let trouble = self.end.trouble().map(|how| format!("\n({how})"));
        format!(
            "The user ran a command in the working directory:\n$ {}\n{output}{}",
            self.line,
            trouble.unwrap_or_default()
        )
    }
}

/// Replaces everything in the window up to `through`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub through: Position,
    pub text: String,
}

/// The user's instruction for the next summary. It is not a message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instruction {
    pub text: String,
}

/// What a request contains besides its messages, as sent. Written when it changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Context {
    pub provider: String,
    pub wire: Wire,
    pub model: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// The last part of `system`, which the conversation keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptPart>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Tools that the provider runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_tools: Vec<ServerTool>,
    pub max_output_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How many tokens the model may use for thinking; without it, thinking is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<u64>,
    /// For a model that accepts an effort instead of a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The kinds of files that the model does not accept. They are left out of requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omits: Vec<FileKind>,
    /// For a model that accepts a verbosity. For other models the system prompt expresses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<Verbosity>,
    /// Whether the request uses the provider's faster service.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fast: bool,
}

/// For serde, which passes a reference.
const fn is_false(value: &bool) -> bool {
    !*value
}

impl Context {
    /// Whether a request with the other context begins differently: another model, different text before the first
    /// message, or other files in the messages.
    pub fn differs(&self, other: &Self) -> bool {
        (self.wire, &self.model) != (other.wire, &other.model)
            || self.system != other.system
            || self.tools != other.tools
            || self.omits != other.omits
            || self.server_tools != other.server_tools
    }
}

/// The part of a system prompt that does not change while its conversation lasts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptPart {
    /// Where it begins in the system prompt, in bytes.
    pub begin: u64,
    /// The working directory that it describes.
    pub cwd: String,
    /// The instruction files that it contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<InstructionFile>,
    /// The skills that it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<KnownSkill>,
}

/// A skill that the model knows by name and description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownSkill {
    pub name: String,
    pub path: String,
}

/// An instruction file of the user or the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstructionFile {
    pub path: String,
    /// Its size, and how much of it the model is given.
    pub bytes: u64,
    pub shown: u64,
    /// The digest of its text; none if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// How much a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    Low,
    Medium,
    High,
}

/// A tool as it is described to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// JSON Schema of an object.
    pub parameters: Value,
}

/// Free text for users (a reason, the detail of an error). The model never sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The event that it explains. `None` means the events of the same append.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<Seq>,
    pub text: String,
}

/// The output of a hook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookOutput {
    pub hook: HookId,
    #[serde(flatten)]
    pub answer: Answer,
}

/// A hook replaced the arguments of a call. The call runs with these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRevised {
    pub call: CallId,
    pub arguments: serde_json::Map<String, Value>,
}
