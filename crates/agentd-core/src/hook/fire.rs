//! A question to the hooks, and the id under which it is asked once.

use super::HookEvent;
use super::occasion::Occasion;
use crate::id::{AgentId, CallId, ConversationId, FireId, OpId, PromptId, TurnId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// What whoever wants to know asks. Asked again under its id, after whatever crash, it has the same answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fire {
    pub id: FireId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
    /// The conversation it is about; none is the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    pub occasion: Occasion,
}

impl Fire {
    pub fn new(id: FireId, occasion: Occasion) -> Self {
        Self {
            id,
            turn: None,
            op: None,
            conversation: None,
            occasion,
        }
    }

    /// About a call of a turn.
    pub fn of_call(turn: TurnId, call: &CallId, occasion: Occasion) -> Self {
        let parts = [turn.as_bytes().as_slice(), call.as_str().as_bytes()];
        let id = FireId::of(occasion.event, &parts);
        Self {
            turn: Some(turn),
            ..Self::new(id, occasion)
        }
    }

    /// About a prompt.
    pub fn of_prompt(prompt: PromptId, occasion: Occasion) -> Self {
        let id = FireId::of(occasion.event, &[prompt.as_bytes()]);
        Self::new(id, occasion)
    }

    /// About the n-th time that a turn comes by here.
    pub fn of_turn(turn: TurnId, n: u64, occasion: Occasion) -> Self {
        let parts = [turn.as_bytes().as_slice(), &n.to_le_bytes()];
        let id = FireId::of(occasion.event, &parts);
        Self {
            turn: Some(turn),
            ..Self::new(id, occasion)
        }
    }

    /// A step of a lifecycle operation.
    pub fn of_op(agent: AgentId, op: OpId, occasion: Occasion) -> Self {
        let parts = [agent.as_bytes().as_slice(), op.as_bytes()];
        let id = FireId::of(occasion.event, &parts);
        Self {
            op: Some(op),
            ..Self::new(id, occasion)
        }
    }

    /// The beginning of a conversation.
    pub fn of_conversation(conversation: ConversationId, occasion: Occasion) -> Self {
        let id = FireId::of(occasion.event, &[conversation.as_bytes()]);
        Self {
            conversation: Some(conversation),
            ..Self::new(id, occasion)
        }
    }
}

impl FireId {
    /// The id of what is told of these.
    pub fn of(event: HookEvent, parts: &[&[u8]]) -> Self {
        let mut all = vec![event.name().as_bytes()];
        all.extend(parts);
        Self::new(uuid_of(&all))
    }
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// A UUID that follows from these.
pub(crate) fn uuid_of(parts: &[&[u8]]) -> Uuid {
    let hash = hash(parts);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// Of these, in hex.
pub fn digest(parts: &[&[u8]]) -> String {
    let hash = hash(parts);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
