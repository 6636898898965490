//! The types of the API's JSON. Fields may be added; they never change their meaning.

mod approval;
mod archive;
mod backup;
mod bindings;
mod commands;
mod compact;
mod context;
mod daemon;
mod events;
mod files;
mod held;
mod hooks;
mod list;
mod mcp;
mod prompt;
mod queue;
mod schedules;
mod search;
mod secrets;
mod subagents;
mod tasks;
pub mod time;
mod tree;
mod trust;
mod usage;

pub use approval::{AnswerQuestion, Approval, Approve, Call, Deny, Need, OnceOnly};
pub use archive::{
    Archive, Archived, DeletedSession, Ended, Import, LeftSession, Prune, Pruned, PrunedAgent,
    PrunedConversation, Purge, Purged, Restore,
};
pub use backup::{BackUp, Backup, BackupProgress};
pub use bindings::{Bind, Binding, BindingMessage, Bindings, Unbind};
pub use commands::{EndedCommand, RunCommand};
pub use compact::{Compact, Compacted};
pub use context::ModelContext;
pub use daemon::{Daemon, Drain, FailingBackup, FailingWebhook};
pub use events::{AllEventsQuery, Delta, EventQuery, Item};
pub use files::{
    CannotRestore, ChangeBy, ChangedFile, ChangedFiles, DiffChange, DiffFiles, FileAction,
    FileChanged, FileDiff, FileOutcome, FilesDiff, FilesOutcome, FilesQuery, NotRestored,
    RestoreFiles, RestoredFile, RestoredFiles, UndoFiles,
};
pub use held::{Held, HeldPrompt, HeldSettings, Release};
pub use hooks::{
    CheckHooks, CheckedHooks, HookLine, HookList, HookSource, HookState, HooksQuery, TestHooks,
    TestedHook, TestedHooks,
};
pub use list::{AgentLine, Agents, List};
pub use mcp::{
    LendServers, LentServers, McpAsk, McpCall, McpCalled, McpEntry, McpGet, McpOffer, McpPrompt,
    McpRead, McpResource, McpServers, McpToolInfo,
};
pub use prompt::{Answer, Send, Sent, Status};
pub use queue::{EditPrompt, MovePrompt, Queue, QueuedPrompt, RemovePrompts};
pub use schedules::{AddSchedule, DueTime, LastFiring, Schedule, Schedules, When};
pub use search::{Found, Hit, Role, Search};
pub use secrets::{SetSecret, StoredSecret, StoredSecrets};
pub use subagents::{AgentRef, Child};
pub use tasks::{Output, OutputQuery, ProcessLog, Task, TaskState, Tasks};
pub use tree::{
    Conversation, Conversations, EndedTurn, Fork, Forked, OneConversation, Origin, Rewind, Turn,
    TurnQuery,
};
pub use trust::{ProjectTrust, Trust, TrustQuery, TrustedFile};
pub use usage::{UsageBy, UsageQuery, UsageReport, UsageRow};

pub use agentd_core::attachment::NewAttachment;
use agentd_core::event::{Direction, LimitKind, Mode, PauseReason, PlanSet, TurnStatus};
use agentd_core::id::{AgentId, ConversationId, OpId, PromptId, Seq, TaskId, TurnId};
pub use agentd_core::message::AttachmentInfo;
pub use agentd_core::reset::{HookReport, Killed, Receipt};
use agentd_core::spec::AgentSpec;
use agentd_core::state::Phase;
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The caller's variables for the agent: provider keys and addresses, `PATH`, `HOME`, `LANG`. They are only kept in
/// memory.
pub type Env = BTreeMap<String, String>;

/// `POST /v1/agents`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// None for a one-shot agent, which gets a generated name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    pub spec: AgentSpec,
    /// The first prompt, accepted in the commit that creates the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Files of the first prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<NewAttachment>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: Env,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Created {
    pub agent: Agent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptId>,
}

/// `GET /v1/agents/{name}`: what `agentd show --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    pub id: AgentId,
    pub name: String,
    #[serde(default)]
    pub aliases: Vec<String>,
    pub mode: Mode,
    pub phase: Phase,
    pub process: Process,
    pub generation: u64,
    pub head: Seq,
    pub conversation: Option<Current>,
    /// The title that was set, or the beginning of the conversation.
    #[serde(default)]
    pub title: Option<String>,
    pub model: Option<String>,
    pub provider: Option<String>,
    pub cwd: Option<String>,
    pub usage: Usage,
    #[serde(with = "time")]
    pub created_at: Timestamp,
    #[serde(with = "time")]
    pub updated_at: Timestamp,
    /// When the turn in progress began.
    #[serde(with = "time::option")]
    pub started_at: Option<Timestamp>,
    /// When the last turn of the current conversation ended.
    #[serde(with = "time::option")]
    pub completed_at: Option<Timestamp>,
    /// The turn in progress.
    pub turn: Option<TurnId>,
    /// The last turn of the current conversation; none after a reset.
    pub last_turn: Option<LastTurn>,
    /// The beginning of the last answer.
    pub summary: Option<String>,
    /// The plan of the current conversation, if the agent has set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanSet>,
    /// Why it waits or has failed, and what to do.
    pub error: Option<String>,
    /// What the turn in progress waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<PauseReason>,
    pub queued: u64,
    /// The calls that wait for approval, including those of its subagents.
    pub approvals: Vec<Approval>,
    pub tasks: Vec<TaskId>,
    /// Its schedules, without the texts of their prompts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<Schedule>,
    /// The agent that started it, if it is a subagent.
    #[serde(default)]
    pub parent: Option<AgentRef>,
    /// The subagents that it has started, newest last.
    #[serde(default)]
    pub children: Vec<Child>,
    pub archived: bool,
    pub stopped: bool,
    /// It was imported and does not run before `agentd start`.
    #[serde(default)]
    pub held: bool,
    /// Only in the response to the request that gave it its name: the agent that had the name as an alias until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub displaced: Option<AgentRef>,
    /// A hooks file of its project that is ignored, because the user has not trusted its present content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untrusted_hooks: Option<String>,
    /// A hooks file that cannot be read, or a hook that does not run because of an error in its file, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_hooks: Option<String>,
    /// Why no tool of it starts: what a tool made in a repository and what could not be moved away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_tools: Option<String>,
    /// The variables of `pass_env` that no caller has sent since the daemon started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_env: Vec<String>,
    /// The services of `pass` that are not available, each with the reason: `ssh-agent: SSH_AUTH_SOCK is not set`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_services: Vec<String>,
    /// The agents whose turns wait for a key: this one, and its running subagents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_keys: Vec<AgentRef>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastTurn {
    pub id: TurnId,
    pub conversation: ConversationId,
    pub status: TurnStatus,
    /// The limit that a turn with the status `limited` reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub state: ProcessState,
    pub pid: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// A process that this daemon started runs it.
    Up,
    /// It needs no process now, and gets one when there is work.
    Asleep,
    /// It is stopped, or has failed.
    Down,
    /// A process that an earlier daemon started runs it.
    Adopted,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Current {
    pub id: ConversationId,
    pub ordinal: u32,
    pub parent: Option<ConversationId>,
    pub turns: u32,
    /// What this conversation has used; [`Agent::usage`] is what the agent has used in its life.
    #[serde(default)]
    pub usage: Usage,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// None if a part of it is unknown.
    pub cost_usd: Option<f64>,
}

/// `POST /v1/agents/{name}/start`, `/continue`, `/env`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: Env,
    /// Only with `/start`: the user has seen what a held agent contains. Without it a held agent is not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
}

impl Start {
    pub const fn with(env: Env) -> Self {
        let release = None;
        Self { env, release }
    }
}

/// `POST /v1/agents/{name}/restart`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: Env,
}

/// `POST /v1/agents/{name}/stop`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    #[serde(default)]
    pub kill_background: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}

/// `POST /v1/agents/{name}/reset`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reset {
    /// Undo or redo instead of a fresh conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Direction>,
    #[serde(default)]
    pub clear_log: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default)]
    pub force: bool,
    #[serde(default)]
    pub skip_hooks: bool,
    #[serde(default)]
    pub kill_background: bool,
    #[serde(default)]
    pub keep_queue: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_generation: Option<u64>,
}

/// `POST /v1/agents/{name}/checkpoint`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpointed {
    pub conversation: ConversationId,
    pub label: String,
    /// The event that the label is on.
    pub seq: Seq,
    /// The file with the conversation's events, to which new events are added.
    pub transcript: String,
}

/// `POST /v1/agents/{name}/rename`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    pub to: String,
}
