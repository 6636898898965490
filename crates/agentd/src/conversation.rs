//! A conversation of an agent, given by its number, its id or the beginning of its id: `agentd conversations` and
//! `agentd show` print them.

use crate::error::Error;
use agentd_client::Client;
use agentd_core::id::{ConversationId, IdPrefix};
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Debug)]
pub struct Which(String);

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_number = text.parse::<u32>().is_ok();
        match is_number || text.parse::<IdPrefix>().is_ok() {
            true => Ok(Self(text.to_owned())),
            false => Err(
                "expected a number, an id, or at least the first 4 characters of an id: \
                          `agentd conversations NAME` shows the numbers"
                    .to_owned(),
            ),
        }
    }
}

impl From<ConversationId> for Which {
    fn from(id: ConversationId) -> Self {
        Self(id.to_string())
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Which {
    /// Its number; its id if the daemon no longer answers.
    pub async fn number(&self, client: &Client, name: &str) -> String {
        let found = client.conversation(name, &self.0).await;
        found.map_or_else(
            |_| self.to_string(),
            |found| found.conversation.ordinal.to_string(),
        )
    }

    /// Its id.
    pub async fn of(&self, client: &Client, name: &str) -> Result<ConversationId, Error> {
        match self.0.parse() {
            Ok(id) => Ok(id),
            Err(_) => Ok(client.conversation(name, &self.0).await?.conversation.id),
        }
    }
}
