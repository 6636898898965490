//! The prompts that a turn answers. They were queued before the turn began, so they are not among its events.

use crate::connect::Connection;
use crate::error::Error;
use agentd_client::api::EventQuery;
use agentd_core::event::{Body, Event};
use agentd_core::id::{PromptId, Seq};
use std::collections::BTreeMap;

/// The newest text of each prompt, in the order in which they were queued.
pub async fn of_turn(
    connection: &mut Connection,
    name: &str,
    query: &EventQuery,
) -> Result<Vec<Event>, Error> {
    let mut wanted: BTreeMap<PromptId, Seq> = BTreeMap::new();
    let mut place = None;
    each(connection, name, query.clone(), |event| {
        let prompts: &[PromptId] = match &event.body {
            Body::PromptsTaken(taken) => &taken.prompts,
            Body::PromptBlocked(blocked) => &[blocked.prompt],
            _ => return,
        };
        place = Some((event.conversation, event.seq));
        wanted.extend(prompts.iter().map(|prompt| (*prompt, event.seq)));
    })
    .await?;
    let Some((conversation, last)) = place else {
        return Ok(Vec::new());
    };
    let before = EventQuery {
        conversation: Some(conversation),
        all: true,
        ..EventQuery::default()
    };
    let mut found: BTreeMap<PromptId, Event> = BTreeMap::new();
    each(connection, name, before, |event| {
        if let Body::Prompt(prompt) = &event.body
            && event.turn.is_none()
            && event.seq < last
            && wanted
                .get(&prompt.prompt)
                .is_some_and(|taken| event.seq < *taken)
        {
            found.insert(prompt.prompt, event.clone());
        }
    })
    .await?;
    let mut found: Vec<Event> = found.into_values().collect();
    found.sort_by_key(|event| event.seq);
    Ok(found)
}

async fn each(
    connection: &mut Connection,
    name: &str,
    mut query: EventQuery,
    mut see: impl FnMut(&Event),
) -> Result<(), Error> {
    loop {
        let page = connection.client.page(name, &query).await;
        let Some((events, next)) = connection.or_again(page).await? else {
            continue;
        };
        events.iter().for_each(&mut see);
        match next {
            Some(next) if next.0 > query.after => query.after = next.0,
            _ => return Ok(()),
        }
    }
}
