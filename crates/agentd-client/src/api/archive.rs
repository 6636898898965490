//! Archive, restore, purge, prune and import.

use super::{Agent, AgentRef};
use agentd_core::id::{ConversationId, TaskId};
use serde::{Deserialize, Serialize};

/// `POST /v1/agents/{name}/archive`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An archived agent, and what was ended with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Archived {
    #[serde(flatten)]
    pub agent: Agent,
    /// The background work that was ended.
    pub ended: Ended,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub tasks: Vec<TaskId>,
    /// Subagents, by name; they were archived as well.
    pub subagents: Vec<String>,
}

/// `POST /v1/agents/{name}/purge`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Purge {
    /// None for all conversations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    /// Report what would be deleted, and delete nothing.
    #[serde(default)]
    pub dry_run: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    pub conversations: Vec<ConversationId>,
    pub events: u64,
    pub blobs: u64,
    /// What an agent's program keeps of these conversations itself: agentd cannot delete it.
    #[serde(default)]
    pub left: Vec<LeftSession>,
    /// The sessions that an agent's program has deleted itself, because it was asked to.
    #[serde(default)]
    pub deleted: Vec<DeletedSession>,
}

/// A session that an agent's program confirmed to have deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedSession {
    pub conversation: ConversationId,
    pub program: String,
    /// The program's own id.
    pub session: String,
}

/// A session that an agent's program may have kept outside of the home that it has for the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftSession {
    pub conversation: ConversationId,
    pub program: String,
    /// The program's own id.
    pub session: String,
    /// Where the program can write; `~` is the user's home.
    pub places: Vec<String>,
    /// Why the program did not delete it; `None` if the program does not offer that, or was not asked yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// `POST /v1/prune`: what the retention policy of the user's settings deletes now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prune {
    /// Report what would be deleted, and delete nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// What was archived and deleted, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    pub dry_run: bool,
    pub agents: Vec<PrunedAgent>,
    #[serde(default)]
    pub conversations: Vec<PrunedConversation>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrunedAgent {
    pub agent: AgentRef,
    pub archived: bool,
    /// Its content is deleted.
    pub purged: bool,
    /// Why not all of it was done.
    pub error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrunedConversation {
    pub agent: AgentRef,
    pub conversation: ConversationId,
    /// 1 for the agent's first, and so on.
    pub ordinal: u32,
    pub purged: bool,
    /// Why it was not purged.
    pub error: Option<String>,
}

/// `POST /v1/agents/{name}/restore`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    /// Another name, if its own is taken.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// `POST /v1/import?as=NAME`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// Another name. If the agent exists already, the copy also gets another id.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
