//! The past of a conversation: the events of those that it branched off, up to the branch points, and its own.

use crate::error::Error;
use agentd_client::Client;
use agentd_client::api::{Conversation, EventQuery};
use agentd_core::event::Event;
use agentd_core::id::{AgentId, ConversationId, Seq};

/// How many branches are followed back.
const DEEPEST: usize = 64;

/// A part of the past, in the journal of one agent.
#[derive(Clone, Copy, Debug)]
struct Part {
    agent: AgentId,
    conversation: ConversationId,
    /// The last event of it that belongs to the past.
    through: Option<Seq>,
}

/// Passes on the events in their order, and returns the number of the last one in the agent's own journal.
pub async fn replay(
    client: &Client,
    agent: AgentId,
    conversation: &Conversation,
    mut each: impl FnMut(&Event),
) -> Result<Option<Seq>, Error> {
    let mut last = None;
    for part in parts(client, agent, conversation).await {
        let mut query = EventQuery {
            conversation: Some(part.conversation),
            all: true,
            ..EventQuery::default()
        };
        let is_past = |seq: Seq| part.through.is_none_or(|through| seq <= through);
        loop {
            let (events, next) = client.page(&part.agent.to_string(), &query).await?;
            for event in events.iter().filter(|event| is_past(event.seq)) {
                each(event);
                if part.agent == agent {
                    last = Some(event.seq);
                }
            }
            match next {
                // A page that does not advance would be requested again without end.
                Some(next) if next.0 > query.after && is_past(next) => query.after = next.0,
                _ => break,
            }
        }
    }
    Ok(last)
}

/// The oldest part first. A conversation that no longer exists here ends the past.
async fn parts(client: &Client, agent: AgentId, conversation: &Conversation) -> Vec<Part> {
    let mut parts = vec![Part {
        agent,
        conversation: conversation.id,
        through: None,
    }];
    let mut from = conversation.from.clone();
    while let Some(origin) = from.filter(|_| parts.len() < DEEPEST) {
        parts.push(Part {
            agent: origin.agent.id,
            conversation: origin.conversation,
            through: Some(origin.seq),
        });
        let name = origin.agent.id.to_string();
        let which = origin.conversation.to_string();
        let before = client.conversation(&name, &which).await;
        from = before.ok().and_then(|it| it.conversation.from);
    }
    parts.reverse();
    parts
}
