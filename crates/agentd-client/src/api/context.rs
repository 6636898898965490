//! What the model is given.

use super::AgentRef;
use agentd_core::event::{InstructionFile, KnownSkill, Tool};
use agentd_core::id::ConversationId;
use agentd_core::request::Part;
use serde::{Deserialize, Serialize};

/// `GET /v1/agents/{name}/context`: what the next request of the current conversation would contain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelContext {
    pub agent: AgentRef,
    pub conversation: Option<ConversationId>,
    /// None before the first request of the conversation, like the system prompt and the tools.
    pub provider: Option<String>,
    pub model: Option<String>,
    /// An estimate, like all numbers of tokens here.
    pub tokens: u64,
    /// The kinds of content in it, in the order of a request.
    pub parts: Vec<Part>,
    /// The instruction files that are in the system prompt.
    pub instructions: Vec<InstructionFile>,
    /// The skills that the system prompt names.
    pub skills: Vec<KnownSkill>,
    pub system: String,
    pub tools: Vec<Tool>,
}
