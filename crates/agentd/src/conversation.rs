//! A conversation of an agent, given by its id or by the number that `agentd conversations` shows.

use crate::error::Error;
use agentd_client::Client;
use agentd_core::id::ConversationId;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug)]
pub enum Which {
    Id(ConversationId),
    Ordinal(u32),
}

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ordinal = || text.parse().map(Self::Ordinal);
        let id = text.parse().map(Self::Id);
        id.or_else(|_| ordinal()).map_err(|_| {
            "expected an id or a number: `agentd conversations NAME` shows both".to_owned()
        })
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Ordinal(n) => n.fmt(f),
        }
    }
}

impl Which {
    /// Its number; its id if the daemon no longer answers.
    pub async fn number(self, client: &Client, name: &str) -> String {
        let found = client.conversation(name, &self.to_string()).await;
        found.map_or_else(
            |_| self.to_string(),
            |found| found.conversation.ordinal.to_string(),
        )
    }

    /// Its id.
    pub async fn of(self, client: &Client, name: &str) -> Result<ConversationId, Error> {
        match self {
            Self::Id(id) => Ok(id),
            Self::Ordinal(_) => {
                let found = client.conversation(name, &self.to_string()).await?;
                Ok(found.conversation.id)
            }
        }
    }
}
