//! The tree of conversations, and how a new one begins from a branch point: rewind and fork.

use super::{Agent, AgentRef, Env, NewAttachment, Reset, Usage};
use agentd_core::event::{BeginSource, Mode, SealReason, TurnStatus};
use agentd_core::id::{ConversationId, OpId, PromptId, Seq, TurnId};
use agentd_core::outer::ProgramMemory;
use agentd_core::spec::AgentSpec;
use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `POST /v1/agents/{name}/rewind`: the other fields are those of [`Reset`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rewind {
    /// A branch point: a label, or a turn by its id or by its number among those that the conversation shows.
    pub to: String,
    /// The conversation of the branch point; by default the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
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

impl Rewind {
    /// To that branch point, with the options of `how`.
    pub fn new(to: String, conversation: Option<ConversationId>, how: Reset) -> Self {
        Self {
            to,
            conversation,
            reason: how.reason,
            force: how.force,
            skip_hooks: how.skip_hooks,
            kill_background: how.kill_background,
            keep_queue: how.keep_queue,
            grace_ms: how.grace_ms,
            op: how.op,
            if_generation: how.if_generation,
        }
    }
}

impl From<Rewind> for Reset {
    /// Everything but the target.
    fn from(rewind: Rewind) -> Self {
        Self {
            step: None,
            clear_log: false,
            reason: rewind.reason,
            force: rewind.force,
            skip_hooks: rewind.skip_hooks,
            kill_background: rewind.kill_background,
            keep_queue: rewind.keep_queue,
            grace_ms: rewind.grace_ms,
            op: rewind.op,
            if_generation: rewind.if_generation,
        }
    }
}

/// `POST /v1/agents/{name}/fork`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    /// The name of the new agent; by default the daemon chooses one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// By default a persistent agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Its settings; by default those of its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Box<AgentSpec>>,
    /// Its first prompt, accepted in the commit that creates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Files of that prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<NewAttachment>,
    /// A branch point, as in [`Rewind::to`]; by default the end of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    /// The new agent's id is derived from it: the same fork again does nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_generation: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: Env,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forked {
    /// Without `summary`, `title` and `error`, which need its text.
    pub agent: Agent,
    /// The last event that it shares with its parent.
    pub from: Origin,
    /// It had been created with this op before.
    pub repeated: bool,
    /// Its first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptId>,
    /// What its program knows of the conversation; none for an agent without a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramMemory>,
}

/// `GET /v1/agents/{name}/conversations`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conversations {
    pub current: Option<ConversationId>,
    /// The conversation that undo would return to.
    pub undo: Option<ConversationId>,
    pub redo: Option<ConversationId>,
    pub conversations: Vec<Conversation>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    pub id: ConversationId,
    /// 1 for the agent's first conversation, and so on.
    pub ordinal: u32,
    pub parent: Option<ConversationId>,
    /// The last event that it shares with the conversation that it branched off.
    pub from: Option<Origin>,
    pub source: BeginSource,
    /// Its first event.
    pub began: Seq,
    #[serde(with = "super::time")]
    pub began_at: Timestamp,
    /// Its last event so far.
    pub head: Seq,
    pub sealed: Option<SealReason>,
    pub current: bool,
    /// The title that was set, or its beginning.
    pub title: Option<String>,
    pub turns: u32,
    /// Turns that ended in it, including those that only compacted.
    pub ended_turns: u32,
    pub compactions: u32,
    pub context_tokens: u64,
    pub usage: Usage,
    pub labels: BTreeMap<String, Seq>,
    pub purged: bool,
    /// The provider's id of its last request.
    pub last_request: Option<String>,
}

/// A position in a conversation of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub agent: AgentRef,
    pub conversation: ConversationId,
    pub seq: Seq,
}

/// `GET /v1/agents/{name}/conversations/{id}`; the ordinal can be used instead of the id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OneConversation {
    #[serde(flatten)]
    pub conversation: Conversation,
    /// The ended turns that it shows, beginning with those of the conversations that it branched off.
    pub ended: Vec<EndedTurn>,
}

/// A turn that has ended, which is a branch point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedTurn {
    pub number: usize,
    pub id: TurnId,
    pub conversation: ConversationId,
    /// Its last event.
    pub seq: Seq,
    #[serde(with = "super::time")]
    pub ended_at: Timestamp,
    pub status: TurnStatus,
    /// It answered no prompt: it was a compaction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compacts: bool,
    /// The first words of the prompt that it answered; only of the newest turns, and none if they were purged.
    #[serde(default)]
    pub prompt: Option<String>,
    /// How many files it changed, as far as that is known; only of the newest turns.
    #[serde(default)]
    pub files: Option<u64>,
    /// It ran commands, and what they changed is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub files_unknown: bool,
}

/// `GET /v1/agents/{name}/turns/{turn}`: a turn by its id, the beginning of its id, or its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub id: TurnId,
    /// None if the conversation that was asked about does not show it.
    pub conversation: Option<ConversationId>,
    pub number: Option<usize>,
    pub running: bool,
}

/// The query of `GET /v1/agents/{name}/turns/{turn}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnQuery {
    /// The conversation whose numbers are meant; by default the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
}
