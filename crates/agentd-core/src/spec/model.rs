//! The settings of an agent. Each field is a key of the front matter, and all are optional.

use super::mcp_server::McpServer;
use super::{
    ApprovalMode, AutoReset, Limits, Network, Notify, Pass, Reasoning, Sandbox, ServerTool,
    Subagent, Verbosity,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The field that is the body of the file and not a key of the front matter.
pub(super) const BODY: &str = "system";

/// An agent's settings: its model, its prompt, its permissions and its limits.
///
/// The JSON form in the journal has the same keys, with the prompt as `system`. Numbers are written even if they are
/// the default, so that a later default does not change existing agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentSpec {
    /// What the agent is for, in lists and for agents that choose a subagent. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The title of the agent's conversations, instead of the text they begin with. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The provider of the model. Default: the one that the daemon or the command line selects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model's name, as its provider spells it. Default: the provider's default model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What runs the agent's turns. Default: `native`.
    pub runtime: Runtime,
    /// The program of an `acp` or `command` runtime, which require one; `native` has none. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// The agent's working directory. Default: the one it was created from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The names of the tools it has; an empty list means none. Default: the default set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Tools that its provider runs: `web_search`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub server_tools: Vec<ServerTool>,
    /// Which tool calls are allowed, need approval or are refused. Default: no rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<Rule>,
    /// When the user is asked about a call that no rule matches. Default: `on-request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalMode>,
    /// What its tools may see and write. Default: the daemon's, which is `workspace-write`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// What its tools may reach. Default: `on`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// What its tools may write in addition to the working directory. Default: nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<String>,
    /// What its tools may read in addition to the system and its toolchains. Default: nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readable: Vec<String>,
    /// Services of the user that its tools may use: `ssh-agent`, `gpg-agent`, `docker`, `kube`, `gh`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pass: Vec<Pass>,
    /// The MCP servers whose tools it has, by names that the user chooses. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp: BTreeMap<String, McpServer>,
    /// The kinds of subagents that it may start with the tool `agent`, by names that the user chooses. Default: none;
    /// with `agent` among its `tools` it may start subagents of its own kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, Subagent>,
    /// Its limits. Default: see [`Limits`].
    pub limits: Limits,
    /// The agent's own hooks, as in a hooks file: an object. Default: null, none.
    /// An op records a digest of the spec, so the keys are sorted.
    #[serde(
        deserialize_with = "crate::canonical::read",
        skip_serializing_if = "serde_json::Value::is_null"
    )]
    pub hooks: serde_json::Value,
    /// What happens to a turn that a crash interrupted. Default: `continue`.
    pub on_crash: OnCrash,
    /// How long an idle agent keeps its process, in milliseconds. Default: 300000.
    pub idle_ms: u64,
    /// When its process is restarted after it has ended. Default: `on_failure`.
    pub restart: Restart,
    /// Environment variables for its tools. Default: none. Not for secrets: they are stored in the journal.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The names of the caller's environment variables that its tools get, in addition to those that all tools get. Their
    /// values are never stored. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pass_env: Vec<String>,
    /// The sampling temperature of the model, 0 to 2. Default: the provider's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How much the model thinks before it answers. Default: the provider's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// How much the model writes in its answers. Default: the provider's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<Verbosity>,
    /// Whether requests use the provider's faster service where the model has one; it costs more. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fast: Option<bool>,
    /// How full the model's context may become, 0.1 to 1.0, before it is compacted. Default: 0.8.
    pub compact_at: f64,
    /// When it gets a fresh conversation automatically. Default: never, see [`AutoReset`].
    #[serde(skip_serializing_if = "AutoReset::is_off")]
    pub auto_reset: AutoReset,
    /// What the user is notified of. Default: what `[notify]` of config.toml says, see [`Notify`].
    #[serde(skip_serializing_if = "Notify::is_default")]
    pub notify: Notify,
    /// Whether new conversations are given the instruction files of the user and the project. Default: true.
    #[serde(skip_serializing_if = "is_true")]
    pub instructions: bool,
    /// The system prompt: the text below the front matter, without trailing whitespace. Its line endings are kept.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub system: String,
}

impl Default for AgentSpec {
    fn default() -> Self {
        Self {
            description: None,
            title: None,
            provider: None,
            model: None,
            runtime: Runtime::default(),
            command: None,
            cwd: None,
            tools: None,
            server_tools: Vec::new(),
            permissions: Vec::new(),
            approval: None,
            sandbox: None,
            network: None,
            writable: Vec::new(),
            readable: Vec::new(),
            pass: Vec::new(),
            mcp: BTreeMap::new(),
            agents: BTreeMap::new(),
            limits: Limits::default(),
            hooks: serde_json::Value::Null,
            on_crash: OnCrash::default(),
            idle_ms: 300_000,
            restart: Restart::default(),
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            temperature: None,
            reasoning: None,
            verbosity: None,
            fast: None,
            compact_at: 0.8,
            auto_reset: AutoReset::default(),
            notify: Notify::default(),
            instructions: true,
            system: String::new(),
        }
    }
}

impl AgentSpec {
    /// Whether a program of its own runs its turns.
    pub fn is_outer(&self) -> bool {
        self.runtime != Runtime::Native
    }
}

/// For serde, which passes a reference.
const fn is_true(value: &bool) -> bool {
    *value
}

/// What runs an agent's turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runtime {
    /// agentd's own loop.
    #[default]
    Native,
    /// A child process that speaks the Agent Client Protocol.
    Acp,
    /// A child process that reads prompts and writes text or JSON lines.
    Command,
}

/// The program of an `acp` or `command` runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// A path, or a name to look for in `PATH`. Default: with a contract, the user's `AGENTD_AGENT_COMMAND`, or
    /// `agentd agent`; otherwise it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// Its arguments. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Whether it is started for each turn, with the prompt as its whole input, instead of once; only for
    /// `runtime: command`, without a contract. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub per_turn: bool,
    /// Arguments after `args` until a turn of the conversation has succeeded; only with `per_turn`. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_args: Vec<String>,
    /// Arguments after `args` from then on, with which the program continues its own conversation; only with `per_turn`.
    /// Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub later_args: Vec<String>,
    /// What it supports beyond prompts; only for `runtime: command`. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<Contract>,
    /// Arguments after those of the contract; only with a contract. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_args: Vec<String>,
}

/// What a `command` runtime supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contract {
    /// The flags of `agentd agent`, with a checkpoint directory for each conversation.
    Agent,
}

/// A decision about some tool calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The tool's name. It has no default.
    pub tool: String,
    /// Which of its calls. Default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// What happens to such a call. It has no default.
    pub decision: Decision,
    /// What such a call may have beyond its sandbox without a question; only with `decision: allow`. Default: nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
}

/// What happens to a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It runs.
    Allow,
    /// The user is asked.
    Ask,
    /// It is refused.
    Deny,
}

/// What happens to a turn that a crash interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCrash {
    /// It continues automatically.
    #[default]
    Continue,
    /// It waits for the user.
    Wait,
}

/// When an agent's process is restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    /// Whenever it ends.
    Always,
    /// If it failed.
    #[default]
    OnFailure,
    /// Never.
    Never,
}
