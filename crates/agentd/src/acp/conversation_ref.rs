//! The id of a session: the agent and the conversation. It is valid for as long as the journal exists, in every process.

use agent_client_protocol::v1::schema::SessionId;
use agentd_core::id::{AgentId, ConversationId};
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConversationRef {
    pub agent: AgentId,
    pub conversation: ConversationId,
}

impl fmt::Display for ConversationRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.agent, self.conversation)
    }
}

impl FromStr for ConversationRef {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (agent, conversation) = text.split_once('.').ok_or(())?;
        Ok(Self {
            agent: agent.parse().map_err(|_| ())?,
            conversation: conversation.parse().map_err(|_| ())?,
        })
    }
}

impl From<ConversationRef> for SessionId {
    fn from(reference: ConversationRef) -> Self {
        Self::new(reference.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn an_id_names_an_agent_and_a_conversation() {
        let reference = ConversationRef {
            agent: AgentId::new(Uuid::from_u128(1)),
            conversation: ConversationId::new(Uuid::from_u128(2)),
        };
        assert_eq!(reference.to_string().parse(), Ok(reference));
        for wrong in ["", "a.b", "00000000-0000-0000-0000-000000000001", "."] {
            assert_eq!(wrong.parse::<ConversationRef>(), Err(()), "{wrong}");
        }
    }
}
